// IDs from flaked, with ioredis.
//
//   const ids = new IDs(['unix:/run/flaked/flaked.sock', '127.0.0.1:7609'])
//   await ids.next()     // '2123840319823806551'
//   await ids.take(100)
//
// As a program: node ids.js COUNT NODE... prints IDs, one a line.
import { fileURLToPath } from 'node:url'
import Redis from 'ioredis'

// What a node says when another one may well answer. Anything else that it
// answers is a mistake in the request, and the same everywhere.
const tryAnother = /^(NOTREADY|CLOCK|FENCED|EXHAUSTED|BUSY|NOAUTH|WRONGPASS)\b/

export class IDs {
  #nodes
  #current = 0

  constructor (nodes, { token, timeout = 1000 } = {}) {
    this.#nodes = nodes.map(node => {
      const options = {
        password: token,
        lazyConnect: true,
        connectTimeout: timeout,
        commandTimeout: timeout,
        // Fail at once where the node cannot be reached: there is another.
        maxRetriesPerRequest: 0,
        retryStrategy: tries => Math.min(50 * tries, 2000),
        enableReadyCheck: false
      }
      const at = node.lastIndexOf(':')
      const redis = node.startsWith('unix:')
        ? new Redis({ ...options, path: node.slice('unix:'.length) })
        : new Redis({ ...options, host: node.slice(0, at), port: Number(node.slice(at + 1)) })
      redis.on('error', () => {}) // those who ask are told
      return redis
    })
  }

  // One ID. It is a string: a number would lose the low bits above 2^53.
  async next () { return (await this.take(1))[0] }

  // n IDs of the node that answered last, or else of the next that does; or an
  // error and none. Those of a reply that was lost are not handed out: a gap,
  // and never a duplicate.
  async take (n) {
    let why
    for (let i = 0; i < this.#nodes.length; i++) {
      const at = (this.#current + i) % this.#nodes.length
      try {
        const ids = await this.#nodes[at].call('GET', 'id', 'COUNT', String(n))
        this.#current = at
        return ids
      } catch (e) {
        if (e.name === 'ReplyError' && !tryAnother.test(e.message)) throw e
        why = e
      }
    }
    throw why
  }

  close () { for (const redis of this.#nodes) redis.disconnect() }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [count, ...nodes] = process.argv.slice(2)
  if (nodes.length === 0) {
    console.error('usage: node ids.js COUNT NODE...')
    process.exit(2)
  }
  const ids = new IDs(nodes)
  console.log(await ids.next())
  for (const id of await ids.take(Number(count) - 1)) console.log(id)
  ids.close()
}
