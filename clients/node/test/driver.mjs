// The driver of the tests in internal/check/clients: internal/check/clients/driver says what it reads and writes.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Client, ClosedError, RefusedError, UnavailableError } from "../dist/index.mjs";

const clients = new Map();
const loads = new Map();

const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function open({ client, options: o }) {
  const prefetching = { prefetch: o.prefetch, maxAgeMs: o.max_age_ms };
  const tls = o.tls_ca && { ca: readFileSync(o.tls_ca) };
  const timeouts = { timeoutMs: o.timeout_ms, nodeTimeoutMs: o.node_timeout_ms };
  const made = new Client({
    addresses: o.addresses,
    cluster: o.cluster,
    token: o.token,
    tls,
    ...timeouts,
    ...prefetching,
  });
  clients.set(client, { client: made, sequences: new Map(), prefetching });
}

function sequence({ client, sequences, prefetching }, name) {
  if (!sequences.has(name)) sequences.set(name, client.sequence(name, prefetching));
  return sequences.get(name);
}

async function call(op, world, { name, n, key, timeout_ms: timeoutMs }) {
  const limits = { timeoutMs };
  switch (op) {
    case "next":
      return [await world.client.next(limits)];
    case "take":
      return world.client.nextMany(n, limits);
    case "seq_next":
      if (n !== undefined) return sequence(world, name).nextMany(n, limits);
      return [await sequence(world, name).next(limits)];
    case "seq_key":
      return [await sequence(world, name).next({ key, ...limits })];
    case "seq_range": {
      const { first, last } = await sequence(world, name).range(n, limits);
      return [first, last];
    }
  }
  throw new Error(`no operation ${op}`);
}

function describe(error) {
  let kind = error.name;
  if (error instanceof RefusedError) kind = "refused";
  else if (error instanceof UnavailableError) kind = "unavailable";
  else if (error instanceof ClosedError) kind = "closed";
  else if (error instanceof TypeError || error instanceof RangeError) kind = "argument";
  else console.error(error);
  const { code, reason, retryAfterMs: retry_after_ms, message: text } = error;
  return { kind, code, reason, retry_after_ms, text };
}

async function answer(op, world, command) {
  try {
    return { values: (await call(op, world, command)).map(String) };
  } catch (error) {
    return { error: describe(error) };
  }
}

function startLoad({ id, client, callers, pause_ms, calls, timeout_ms }) {
  const load = { stopped: false, key: 0 };
  const world = clients.get(client);
  const caller = async () => {
    for (let i = 0; !load.stopped; i++) {
      const { op, ...one } = calls[i % calls.length];
      if (one.key) one.key = one.key.replace("*", String(++load.key));
      const began = performance.now();
      const outcome = await answer(op, world, { ...one, timeout_ms });
      write({ load: id, op, name: one.name, took_ms: performance.now() - began, ...outcome });
      await pause(pause_ms);
    }
  };
  load.ended = Promise.all(Array.from({ length: callers }, caller));
  loads.set(id, load);
}

async function run(command) {
  const { op, client, load } = command;
  switch (op) {
    case "open":
      return open(command);
    case "close":
      return clients.get(client).client.close();
    case "load":
      return startLoad(command);
    case "stop":
      loads.get(load).stopped = true;
      return loads.get(load).ended.then(() => undefined);
  }
  return answer(op, clients.get(client), command);
}

// It ends with its input: no client keeps the process alive.
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  run(command).then(
    (outcome) => write({ id: command.id, ...outcome }),
    (error) => write({ id: command.id, error: describe(error) }),
  );
}
for (const load of loads.values()) load.stopped = true;
