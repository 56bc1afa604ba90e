// node node-redis.js HOST PORT: asks a node for IDs as a program with node-redis would.
import { createClient } from 'redis'
import { strings, same, fails } from './check.js'

const [host, port] = process.argv.slice(2)
for (const RESP of [2, 3]) {
  const c = createClient({ socket: { host, port: Number(port), reconnectStrategy: false }, RESP, name: 'e2e' })
  c.on('error', e => { throw e })
  await c.connect()

  strings('GET order', await c.get('order'))
  strings('GET order COUNT 100', await c.sendCommand(['GET', 'order', 'COUNT', '100']), 100)
  strings('GET 42', await c.get('42'))
  strings('MGET', await c.mGet(['a', 'b', 'c']), 3)
  // node-redis sends the commands of one tick of the event loop as one pipeline.
  strings('pipeline', await Promise.all(Array.from({ length: 1000 }, () => c.get('order'))), 1000)
  const before = c.get('order')
  const bad = fails('COUNT 0', c.sendCommand(['GET', 'order', 'COUNT', '0']), 'ERR a count must be 1 to ')
  const [id] = strings('before', await before)
  await bad
  same('PING', await c.ping(), 'PONG')
  same('ECHO', await c.echo('a b'), 'a b')
  same('GETNAME', await c.clientGetName(), 'e2e')
  same('DECODE', (await c.sendCommand(['DECODE', id])).split(' ')[0], `id=${id}`)
  same('CONFIG GET', JSON.stringify(await c.configGet('save')), '{}')
  same('INFO', /\r\nids:\d+\r\n/.test(await c.info('stats')), true)
  await c.close()
}
