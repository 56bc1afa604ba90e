// A fake node, for what the cases of clients/cases.jsonl cannot say: what a Node.js program sees.
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Starts a node that answers each request with the lines that `reply(line, socket)` returns, or later if that returns
 * undefined. Without `reply` it counts from `first`.
 */
export async function startFake({ first = 1, reply } = {}) {
  const fake = { requests: [], connections: 0, sockets: new Set(), next: first, cluster: "u1" };
  const count = (line) => {
    const n = Number(line.split(" ").at(-1)) || 1;
    return Array.from({ length: n }, () => fake.next++).join("\n");
  };
  const serve = reply ?? count;
  fake.count = count;
  const server = createServer((socket) => {
    fake.connections++;
    fake.sockets.add(socket.setNoDelay(true));
    let rest = "";
    socket.on("error", () => undefined).on("close", () => fake.sockets.delete(socket));
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("WORKER")) {
          socket.write(`worker=0 cluster=fake cluster_uuid=${fake.cluster}\n`);
          continue;
        }
        fake.requests.push(line);
        const text = serve(line, socket);
        if (text !== undefined) socket.write(`${text}\n`);
      }
      fake.arrived?.();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  fake.address = `127.0.0.1:${server.address().port}`;
  fake.close = async () => {
    server.close();
    for (const socket of fake.sockets) socket.resetAndDestroy();
    await once(server, "close");
  };
  /** Resolves when n requests have arrived. */
  fake.requested = (n) =>
    new Promise((resolve) => {
      fake.arrived = () => fake.requests.length >= n && resolve();
      fake.arrived();
    });
  return fake;
}
