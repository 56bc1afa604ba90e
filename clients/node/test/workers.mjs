// A program with workers of a cluster and worker threads. Each takes IDs of a client that prefetches, and prints them.
import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { isMainThread, Worker } from "node:worker_threads";
import { Client } from "../dist/index.mjs";

const [, , address] = process.argv;
const client = new Client({ addresses: [address], prefetch: 100, maxAgeMs: 60_000 });

for (let i = 0; i < 20; i++) console.log(String(await client.next()));
cluster.worker?.disconnect();
if (cluster.isPrimary && isMainThread) {
  for (let i = 0; i < 2; i++) {
    cluster.fork();
    new Worker(fileURLToPath(import.meta.url), { argv: [address] });
  }
}
