// Real nodes on a real ZooKeeper, for tests. They run if FLAKED_TEST_ZK is "require", as `make test-clients` sets it.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, URL } from "node:url";
import { promisify } from "node:util";
import { Client } from "../dist/index.mjs";

const here = fileURLToPath(new URL(".", import.meta.url)); // Node 18 has no import.meta.dirname

const run = promisify(execFile);
const root = join(here, "../../..");

/** For the options of a test: why it must be skipped, or false. */
export const skip = process.env.FLAKED_TEST_ZK === "require" ? false : "it needs ZooKeeper: set FLAKED_TEST_ZK=require";

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** Builds flaked and starts ZooKeeper. `t` is a test, whose end ends all. */
export async function startSite(t) {
  const dir = await mkdtemp(join(tmpdir(), "flaked-node-"));
  const zkDev = (...args) => run(join(root, "scripts/zk-dev.sh"), [...args, "--dir", join(dir, "zk")]);
  const nodes = [];
  t.after(async () => {
    await Promise.all(nodes.map((node) => node.end()));
    await zkDev("stop", "--wipe");
    await rm(dir, { recursive: true });
  });
  const binary = join(dir, "flaked");
  await run("go", ["build", "-o", binary, "./cmd/flaked"], { cwd: root });
  const { stdout } = await zkDev("start", "--nodes", "1", "--port", "0");
  const zk = /FLAKED_ZK='?([^'\s]+)/.exec(stdout)[1];
  return {
    flaked: (...args) => run(binary, [...args, "--zk", zk]),
    startNode: async () => {
      const node = await startNode(binary, zk, dir, await freePort());
      nodes.push(node);
      return node;
    },
  };
}

async function startNode(binary, zk, dir, port) {
  const address = `127.0.0.1:${port}`;
  const state = join(dir, `state-${port}`);
  const flags = ["--zk", zk, "--bootstrap", "--heartbeat", "200ms", "--confirm-time", "800ms"];
  const own = ["--listen", address, "--admin", "127.0.0.1:0", "--state-dir", state];
  const node = { address };
  let log = "";
  node.start = async () => {
    const child = spawn(binary, ["serve", ...flags, ...own], { stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.on("data", (chunk) => (log += chunk));
    const ended = once(child, "exit");
    node.kill = (signal) => child.kill(signal);
    node.end = () => child.kill("SIGCONT") && child.kill("SIGKILL") && ended;
    const probe = new Client({ addresses: [address], timeoutMs: 30_000 });
    await probe.next().catch((error) => {
      throw new Error(`node ${address} does not serve:\n${log}`, { cause: error });
    });
    await probe.close();
  };
  await node.start();
  return node;
}
