// node valkey-glide.js HOST PORT: asks a node for IDs as a program with valkey-glide would, with its
// defaults.
import { GlideClient, Batch, Logger } from '@valkey/valkey-glide'
import { strings, same, fails } from './check.js'

Logger.init('off')
const [host, port] = process.argv.slice(2)
const c = await GlideClient.createClient({ addresses: [{ host, port: Number(port) }], requestTimeout: 10_000 })
strings('GET order', await c.get('order'))
strings('GET 42', await c.get('42'))
strings('MGET', await c.mget(['a', 'b', 'c']), 3)
strings('GET order COUNT 100', await c.customCommand(['GET', 'order', 'COUNT', '100']), 100)
for (const atomic of [true, false]) { // with MULTI and EXEC, and without
  const batch = new Batch(atomic)
  for (let i = 0; i < 100; i++) batch.get('order')
  strings('batch', await c.exec(batch, true), 100)
}
await fails('COUNT 0', c.customCommand(['GET', 'order', 'COUNT', '0']), 'An error was signalled by the server: - ResponseError: a count must be 1 to ')
same('PING', await c.ping(), 'PONG')
c.close()
