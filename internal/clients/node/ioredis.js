// node ioredis.js HOST PORT: asks a node for IDs as a program with ioredis would.
import { Redis } from 'ioredis'
import { strings, same, fails } from './check.js'

const [host, port] = process.argv.slice(2)
for (const enableAutoPipelining of [false, true]) {
  const c = new Redis({ host, port: Number(port), connectionName: 'e2e', enableAutoPipelining, retryStrategy: null })
  c.on('error', e => { throw e })

  strings('GET order', await c.get('order'))
  strings('GET order COUNT 100', await c.call('GET', 'order', 'COUNT', '100'), 100)
  strings('GET 42', await c.get(42))
  strings('MGET', await c.mget('a', 'b', 'c'), 3)
  strings('at once', await Promise.all(Array.from({ length: 1000 }, () => c.get('order'))), 1000)

  const pipeline = c.pipeline()
  for (let i = 0; i < 1000; i++) pipeline.get('order')
  const replies = await pipeline.exec()
  for (const [e] of replies) if (e) throw e
  strings('pipeline', replies.map(([, id]) => id), 1000)

  await fails('COUNT 0', c.call('GET', 'order', 'COUNT', '0'), 'ERR a count must be 1 to ')
  const [id] = strings('after', await c.get('order'))
  same('PING', await c.ping(), 'PONG')
  same('ECHO', await c.echo('a b'), 'a b')
  same('GETNAME', await c.client('GETNAME'), 'e2e')
  same('DECODE', (await c.call('DECODE', id)).split(' ')[0], `id=${id}`)
  same('INFO', /\r\nids:\d+\r\n/.test(await c.info('stats')), true)
  same('QUIT', await c.quit(), 'OK')
}
