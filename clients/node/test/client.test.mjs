import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, URL } from "node:url";
import { inspect, promisify } from "node:util";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { Client, ClosedError, FlakedError, RefusedError, UnavailableError } from "../dist/index.mjs";
import { startFake } from "./fake.mjs";

const here = fileURLToPath(new URL(".", import.meta.url)); // Node 18 has no import.meta.dirname

/** Starts a fake and a client, which end with the test. */
async function start(t, fakeOptions, options = {}) {
  const fake = await startFake(fakeOptions);
  const client = new Client({ addresses: [fake.address], ...options });
  t.after(async () => {
    await client.close();
    await fake.close();
  });
  return { fake, client };
}

test("10,000 calls at once share a connection, and each gets its own ID", async (t) => {
  const { fake, client } = await start(t);
  const ids = await Promise.all(Array.from({ length: 10_000 }, () => client.next()));
  assert.equal(new Set(ids).size, 10_000);
  assert.equal(fake.connections, 1);
});

test("the requests of one turn of the event loop are written together, after the token", async (t) => {
  const chunks = [];
  const seen = new Set();
  const { fake, client } = await start(
    t,
    {
      reply: (line, socket) => {
        if (!seen.has(socket)) socket.prependListener("data", (chunk) => chunks.push(String(chunk)));
        seen.add(socket);
        return line.startsWith("AUTH") ? "OK" : fake.count(line);
      },
    },
    { token: "secret" },
  );
  await Promise.all([client.next(), client.next()]);
  assert.deepEqual(fake.requests, ["AUTH secret", "GET", "GET"]);
  await Promise.all([client.next(), client.nextMany(2), Promise.resolve().then(() => client.next())]);
  assert.deepEqual(chunks, ["GET\nGET 2\nGET\n"]);
});

test("an aborted call fails with the signal's reason, and its reply goes to nobody", async (t) => {
  const { fake, client } = await start(t, { reply: () => undefined });
  const abort = new AbortController();
  const first = client.next();
  const second = client.next({ signal: abort.signal });
  const third = client.next();
  await fake.requested(3);
  const reason = new Error("enough");
  abort.abort(reason);
  await assert.rejects(second, (error) => error === reason);
  for (const socket of fake.sockets) socket.write("1\n2\n3\n");
  assert.deepEqual(await Promise.all([first, third]), [1n, 3n]);
});

test("a call that is aborted before it is sent is not sent", async (t) => {
  const { fake, client } = await start(t);
  await assert.rejects(client.next({ signal: AbortSignal.abort() }), { name: "AbortError" });
  const abort = new AbortController();
  const aborted = client.next({ signal: abort.signal });
  const kept = client.next();
  abort.abort();
  await assert.rejects(aborted, { name: "AbortError" });
  assert.equal(await kept, 1n);
  assert.deepEqual(fake.requests, ["GET"]);
});

test("a call leaves no listener at its signal", async (t) => {
  const { client } = await start(t);
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => {
    listeners++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args) => {
    listeners--;
    removeEventListener.apply(signal, args);
  };
  await Promise.all(Array.from({ length: 20 }, () => client.next({ signal })));
  assert.equal(listeners, 0);
});

test("an abort ends all calls with the signal, whatever its reason is", async (t) => {
  const { fake, client } = await start(t, { reply: () => undefined });
  for (const reason of [new Error("enough"), null, 0, ""]) {
    const abort = new AbortController();
    const calls = Array.from({ length: 3 }, () => client.next({ signal: abort.signal }));
    await fake.requested(fake.requests.length + 3);
    abort.abort(reason);
    assert.deepEqual(
      (await Promise.allSettled(calls)).map((call) => [call.status, call.reason]),
      Array(3).fill(["rejected", reason]),
    );
  }
});

test("many calls with one signal, and many closes, cause no warning of a leak", async (t) => {
  const warnings = [];
  const warned = (warning) => warnings.push(warning.message);
  process.on("warning", warned);
  t.after(() => process.off("warning", warned));
  const { client } = await start(t);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 20 }, () => client.next({ signal })));
  await Promise.all(Array.from({ length: 20 }, () => client.close()));
  await new Promise((resolve) => setImmediate(resolve)); // warnings come in a later turn
  assert.deepEqual(warnings, []);
});

test("a node without TLS that is asked with it is an error that says so", async (t) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined).on("data", () => socket.write("-ERR unknown command\n"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `127.0.0.1:${server.address().port}`;
  const client = new Client({ addresses: [address], tls: true, timeoutMs: 1000 });
  t.after(() => Promise.all([client.close(), server.close()]));
  const error = await client.next().catch((failed) => failed);
  assert.ok(error instanceof UnavailableError);
  const advice = "Correct the address, or leave out the option tls";
  assert.ok(error.message.endsWith(`: the node does not use TLS at ${address}. ${advice}`), error.message);
});

test("close fails calls that wait, and later ones", async (t) => {
  const { fake, client } = await start(t, { reply: () => undefined });
  const waiting = [client.next(), client.nextMany(3), client.sequence("order").next()];
  const failed = waiting.map((call) => assert.rejects(call, ClosedError));
  await fake.requested(3);
  await Promise.all([client.close(), client.close()]);
  await Promise.all(failed);
  await assert.rejects(client.next(), ClosedError);
  await assert.rejects(client.sequence("order").range(5), ClosedError);
});

test("await using closes the client", async (t) => {
  const { client } = await start(t);
  await client.next();
  await client[Symbol.asyncDispose]();
  await assert.rejects(client.next(), ClosedError);
});

test("a busy event loop is not a silent node", async (t) => {
  const { fake, client } = await start(t, {}, { nodeTimeoutMs: 50, timeoutMs: 100 });
  await client.next();
  const call = client.next();
  await fake.requested(2);
  const until = performance.now() + 200;
  while (performance.now() < until);
  assert.equal(await call, 2n);
  assert.equal(fake.connections, 1);
});

test("a node that answers one request after the other is not silent", async (t) => {
  const { fake, client } = await start(t, { reply: () => undefined }, { nodeTimeoutMs: 200 });
  const calls = Array.from({ length: 6 }, () => client.next());
  await fake.requested(6);
  const [socket] = fake.sockets;
  for (let i = 1; i <= 6; i++) {
    await new Promise((resolve) => setTimeout(resolve, 80));
    socket.write(`${i}\n`);
  }
  assert.deepEqual(await Promise.all(calls), [1n, 2n, 3n, 4n, 5n, 6n]);
  assert.equal(fake.connections, 1);
});

test("prefetched values need no request, and each is given once", async (t) => {
  const { fake, client } = await start(t, {}, { prefetch: 100, maxAgeMs: 60_000 });
  const ids = [await client.next()];
  await fake.requested(2);
  for (let i = 0; i < 1000; i++) ids.push(await client.next());
  assert.equal(new Set(ids).size, 1001);
  assert.deepEqual(fake.requests.slice(0, 2), ["GET", "GET 100"]);
  assert.ok(fake.requests.length < 200, `${fake.requests.length} requests`);
});

test("values of a client rise, though calls overtake the request for the stock", async (t) => {
  const { client } = await start(t, {}, { prefetch: 10, maxAgeMs: 60_000 });
  const task = async () => {
    const ids = [];
    for (let i = 0; i < 500; i++) ids.push(await client.next());
    for (let i = 1; i < ids.length; i++) assert.ok(ids[i] > ids[i - 1], `${ids[i]} after ${ids[i - 1]}`);
    return ids;
  };
  const ids = (await Promise.all([task(), task(), task()])).flat();
  assert.equal(new Set(ids).size, 1500);
});

test("errors have their class, their name and the node's words", async (t) => {
  const refusal = "-ERR reason=no-sequence no sequence order";
  const { fake, client } = await start(t, { reply: (line) => (line === "GET" ? "-NOTREADY starting" : refusal) });
  const refused = await client
    .sequence("order")
    .next()
    .catch((error) => error);
  assert.ok(refused instanceof RefusedError && refused instanceof FlakedError);
  assert.match(refused.stack, /^RefusedError: /);
  const { name, message, code, reason, text, address } = refused;
  assert.deepEqual(
    { name, message, code, reason, text, address },
    {
      name: "RefusedError",
      message: `${fake.address} answered ${refusal}`,
      code: "ERR",
      reason: "no-sequence",
      text: "reason=no-sequence no sequence order",
      address: fake.address,
    },
  );
  const unavailable = await client.next({ timeoutMs: 100 }).catch((error) => error);
  assert.ok(unavailable instanceof UnavailableError);
  assert.equal(unavailable.code, "NOTREADY");
  assert.ok(unavailable.cause instanceof RefusedError);
  assert.match(unavailable.message, /within 100 ms: 127\.0\.0\.1:\d+ answered -NOTREADY starting$/);
});

test("errors keep their fields on the way to another thread", async (t) => {
  const { client } = await start(t, {
    reply: (line) =>
      line === "GET" ? "-NOTREADY reason=starting retry_after_ms=900 wait" : "-ERR reason=no-sequence no",
  });
  const refused = await client
    .sequence("order")
    .next()
    .catch((error) => error);
  const unavailable = await client.next({ timeoutMs: 100 }).catch((error) => error);
  await client.close();
  const closed = await client.next().catch((error) => error);
  const of = ({ name, message, code, reason, retryAfterMs }) => ({ name, message, code, reason, retryAfterMs });
  for (const error of [refused, unavailable, closed]) {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(error);
    const { message } = receiveMessageOnPort(port2);
    port1.close();
    assert.deepEqual(of(message), of(error));
    assert.ok(error instanceof Error && Object.prototype.toString.call(error) === "[object Error]");
    assert.ok(inspect(error).replace(" [Error]", "").includes(`${error.name}: ${error.message}`), inspect(error));
    assert.ok(!JSON.stringify(error).includes("    at "), "JSON tells no stack");
  }
  assert.deepEqual(of(unavailable), {
    ...of(unavailable),
    code: "NOTREADY",
    reason: "starting",
    retryAfterMs: 900,
  });
});

test("an error that nobody catches keeps its fields on the way out of a worker thread", async (t) => {
  const { fake } = await start(t, { reply: () => "-ERR reason=no-sequence no" });
  const worker = new Worker(
    `const { Client } = require(${JSON.stringify(join(here, "../dist/index.js"))});
     new Client({ addresses: [require("node:worker_threads").workerData] }).sequence("order").next();`,
    { eval: true, workerData: fake.address },
  );
  const [error] = await once(worker, "error");
  assert.ok(error instanceof Error);
  assert.deepEqual([error.code, error.reason], ["ERR", "no-sequence"]);
});

test("a stack trace has the function that called", async (t) => {
  const { client } = await start(t, { reply: () => "-ERR no" });
  const saveOrder = async () => {
    await client.next();
  };
  await assert.rejects(saveOrder(), ({ stack }) => /^RefusedError: [^]*\n *at async saveOrder /.test(stack));
});

test("localhost is found whether the node listens on IPv4 or IPv6, and a refusal has words", async (t) => {
  const { fake } = await start(t);
  const port = fake.address.split(":")[1];
  const client = new Client({ addresses: [`localhost:${port}`] });
  t.after(() => client.close());
  assert.equal(await client.next(), 1n);
  const nobody = new Client({ addresses: ["localhost:1"], timeoutMs: 50 });
  await assert.rejects(nobody.next(), /connection refused by localhost:1\. Check that the node runs/);
});

/** Runs a program and returns its output. It must end by itself. */
async function run(program, ...args) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, ...args], { cwd: here });
  let out = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  child.stderr.on("data", (chunk) => (out += chunk));
  const late = setTimeout(() => child.kill(), 10_000);
  const [code] = await once(child, "close");
  clearTimeout(late);
  return { code, out };
}

const program = (body) => `
  import { Client } from "../dist/index.mjs";
  const client = new Client({ addresses: [process.argv[1]], prefetch: 10 });
  ${body}`;

test("a program ends by itself, though the client is open", async (t) => {
  const { fake } = await start(t);
  const { code, out } = await run(program(`console.log(await client.next());`), fake.address);
  assert.deepEqual({ code, out }, { code: 0, out: "1n\n" });
});

test("a program waits for its calls, though nothing else keeps it alive", async (t) => {
  const { fake } = await start(t, { reply: () => undefined });
  const body = `client.next({ timeoutMs: 300 }).catch((error) => console.log(error.name));`;
  const { code, out } = await run(program(body), fake.address);
  assert.deepEqual({ code, out }, { code: 0, out: "UnavailableError\n" });
});

test("a connection that breaks ends no program", async (t) => {
  const { fake } = await start(t);
  const body = `
    console.log(await client.next());
    process.stdin.once("data", () => process.exit(0));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program(body), fake.address], {
    cwd: here,
  });
  await once(child.stdout, "data");
  for (const socket of fake.sockets) socket.resetAndDestroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  child.stdin.write("end\n");
  const [code] = await once(child, "close");
  assert.equal(code, 0);
});

test("neither workers of a cluster nor threads share prefetched values or connections", async (t) => {
  const { fake } = await start(t);
  const { stdout } = await promisify(execFile)(process.execPath, [join(here, "workers.mjs"), fake.address]);
  const ids = stdout.trim().split("\n");
  assert.equal(ids.length, 5 * 20);
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(fake.connections, 5);
});
