import assert from "node:assert/strict";
import { test } from "node:test";
import { bigintReplacer, Client } from "../dist/index.mjs";
import errors from "../dist/errors.js";
import identities from "../dist/identity.js";
import nodes from "../dist/node.js";
import options from "../dist/options.js";
import stocks from "../dist/stock.js";

const { RefusedError } = errors;
const { chooseNode, needsOperator, Node } = nodes;
const { parseAddress } = options;
const { Identity } = identities;
const { Stock } = stocks;

const refused = (code, reason, retryAfterMs) => new RefusedError("a:1", { code, text: "", reason, retryAfterMs });
const make = (name, random = 0.5) => new Node(parseAddress(name), () => random);

test("the first healthy node is asked, then a slow one, then the one whose pause ends first", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => make(name));
  const all = [a, b, c];
  assert.equal(chooseNode(all, new Set()), a);
  a.fail(new Error("refused"), false, 100);
  assert.equal(chooseNode(all, new Set()), b);
  b.fail(new Error("silent"), true, 100);
  assert.equal(chooseNode(all, new Set()), c);
  assert.equal(chooseNode(all, new Set([c])), b);
  c.fail(new Error("refused"), false, 50);
  assert.equal(chooseNode(all, new Set()), b);
  assert.equal(chooseNode(all, new Set([b])), c);
  assert.equal(chooseNode(all, new Set(all)), undefined);
  a.restore();
  assert.equal(chooseNode(all, new Set()), a);
});

test("a pause doubles from 20 ms to 1 s, varies by half, and begins anew after an answer", () => {
  const pauses = (random) => {
    const node = make("a", random);
    return Array.from({ length: 8 }, () => {
      node.fail(new Error("down"), false, 0);
      return node.until;
    });
  };
  assert.deepEqual(pauses(0.5), [20, 40, 80, 160, 320, 640, 1000, 1000]);
  assert.deepEqual(pauses(0), [10, 20, 40, 80, 160, 320, 500, 500]);
  assert.deepEqual(pauses(1), [30, 60, 120, 240, 480, 960, 1500, 1500]);
  const node = make("a");
  node.fail(new Error("down"), false, 0);
  node.restore();
  node.fail(new Error("down"), false, 0);
  assert.equal(node.until, 20);
});

test("a refusal can ask for a longer pause, up to 5 s", () => {
  for (const [error, pause] of [
    [refused("CLOCK", undefined, 300), 300],
    [refused("CLOCK", undefined, 5), 20],
    [refused("CLOCK", undefined, 60_000), 5000],
    [refused("NOAUTH"), 5000],
    [refused("WRONGPASS"), 5000],
    [refused("EXHAUSTED"), 5000],
  ]) {
    const node = make("a");
    node.fail(error, false, 0);
    assert.equal(node.until, pause, error.message);
  }
  assert.equal(needsOperator(refused("EXHAUSTED", "exhausted")), false);
});

test("a paused node is asked after its pause, and a slow one at any time", () => {
  const node = make("a");
  assert.equal(node.mayBeAsked(0), true);
  node.fail(new Error("down"), false, 0);
  assert.equal(node.mayBeAsked(19), false);
  assert.equal(node.mayBeAsked(20), true);
  node.fail(new Error("silent"), true, 0);
  assert.equal(node.mayBeAsked(1), true);
});

test("the stock gives values in order, each once, and none that is too old", () => {
  let now = 0;
  const stock = new Stock(4, 1000, () => 1e12 + now);
  const take = (at) => stock.take((now = at));
  const filled = (values, at) => stock.filled(values, at, (now = at));
  assert.equal(take(0), undefined);
  assert.equal(stock.lacks(100), 4);
  assert.equal(stock.lacks(100), 0, "one request at a time");
  filled([1n, 2n, 3n, 4n], 0);
  assert.deepEqual([take(1), stock.lacks(100), take(1), stock.lacks(100)], [1n, 0, 2n, 2]);
  filled([5n, 6n], 500);
  assert.deepEqual([take(1000), take(1001), take(1500)], [3n, 5n, 6n]);
  assert.equal(take(1500), undefined);
  assert.equal(stock.lacks(3), 3, "at most as many as one request may ask for");
  filled([], 1600);
  assert.equal(stock.lacks(100), 4, "a request that failed is repeated");
});

test("the stock dies if the clocks have moved apart by more than its age", () => {
  for (const [passed, wallPassed, want] of [
    [500, 500, 1n],
    [500, 1400, 1n],
    [500, 1600, undefined],
    [500, -600, undefined],
    [-4000, 100, undefined],
  ]) {
    let wall = 1e12;
    const stock = new Stock(4, 1000, () => wall);
    stock.filled([1n, 2n], 5000, 5000);
    wall += wallPassed;
    assert.equal(stock.take(5000 + passed), want, `${passed} ${wallPassed}`);
  }
});

test("the stock looks at the age of its values again when the wall clock has moved", () => {
  let wall = 1e12;
  const stock = new Stock(4, 1000, () => wall);
  const now = performance.now();
  stock.filled([1n, 2n, 3n, 4n], now, now);
  assert.deepEqual([stock.next(), stock.next()], [1n, 2n]);
  wall += 1;
  assert.equal(stock.next(), 3n);
  wall += 5000; // the process was resumed from a snapshot
  assert.equal(stock.next(), undefined);
  stock.filled([5n], now, now);
  assert.deepEqual([stock.next(), stock.next()], [5n, undefined]);
});

test("a call gets a lower value that came while it was under way", () => {
  const stock = new Stock(4, 1000, () => 1e12);
  assert.equal(stock.exchange(7n, 0, 0), 7n);
  stock.filled([1n, 2n], 0, 0);
  assert.deepEqual([stock.exchange(3n, 0, 0), stock.exchange(4n, 0, 0), stock.take(0)], [1n, 2n, 3n]);
  assert.equal(stock.exchange(2n, 0, 0), 2n);
});

test("a client wants the cluster of the first node, or the configured one", () => {
  const who = (name) => `worker=0 state=serving cluster=${name} cluster_uuid=uuid-of-${name}`;
  const identity = new Identity();
  assert.equal(identity.request, "WORKER");
  for (const line of ["PONG", "OK", "worker=0", "-ERR unknown command"]) assert.ok(identity.check("a", line, false));
  assert.match(identity.check("a", "worker=none cluster=x cluster_uuid=none", false).message, /has not joined/);
  assert.ok(identity.isUnknown);
  assert.equal(identity.check("a", who("prod"), false), undefined);
  assert.equal(identity.request, "WORKER uuid-of-prod");
  const moved = identity.check("a", who("test"), false);
  assert.deepEqual(
    [moved.code, moved.message],
    ["WRONGNODE", "a belongs to cluster test (uuid-of-test), not to prod (uuid-of-prod)"],
  );
  assert.equal(identity.error, undefined);
  identity.check("b", who("test"), true);
  assert.match(identity.error.message, /two clusters: a to prod \(uuid-of-prod\) and b to test \(uuid-of-test\)/);
  const configured = new Identity("prod");
  assert.equal(configured.request, "WORKER prod");
  const refused = "-WRONGNODE reason=other-cluster cluster=test cluster_uuid=u2 no";
  assert.equal(configured.check("a", refused, false).message, "a belongs to cluster test (u2), not to prod");
});

test("a refusal because of the token names the option", () => {
  const said = (code, text) => new RefusedError("a:1", { code, text }).message;
  assert.equal(said("NOAUTH", "a token"), "a:1 answered -NOAUTH a token. Give the client the option token");
  assert.equal(said("WRONGPASS", ""), "a:1 answered -WRONGPASS. Correct the client's option token");
  assert.equal(said("CLOCK", "it went back"), "a:1 answered -CLOCK it went back");
});

test("addresses", () => {
  const endpoint = (host, port) => ({ host, port });
  for (const [name, want] of [
    ["ids", endpoint("ids", 7609)],
    ["10.0.0.1:80", endpoint("10.0.0.1", 80)],
    ["[::1]:7619", endpoint("::1", 7619)],
    ["[::1]", endpoint("::1", 7609)],
    ["::1", endpoint("::1", 7609)],
    ["unix:/run/x", { path: "/run/x" }],
  ]) {
    assert.deepEqual(parseAddress(name), { name, ...want });
  }
  const wrong = "|unix:x|/run/x|tcp://a:1|:7609|7609|a:0|a:65536|a:b|a b|[a]:1|a:1:2|[::1|a:|a:1\n|unix:/".split("|");
  wrong[wrong.length - 1] += "x".repeat(107);
  for (const name of wrong) assert.throws(() => parseAddress(name), RangeError, name);
  assert.throws(() => parseAddress(7609), TypeError);
});

test("wrong options are errors of the constructor", () => {
  for (const wrong of [
    { addresses: [] },
    { token: "a b" },
    { cluster: "a b" },
    { cluster: "" },
    { token: "" },
    { timeoutMs: 0 },
    { timeoutMs: Infinity },
    { nodeTimeoutMs: NaN },
    { prefetch: -1 },
    { prefetch: 1.5 },
    { prefetch: 100_001 },
    { maxAgeMs: 0.5 },
  ]) {
    assert.throws(() => new Client(wrong), RangeError, JSON.stringify(wrong));
  }
  for (const wrong of [{ addresses: "a:1" }, { timeoutMs: "5" }, { prefetch: "5" }, { tls: { cert: "no" } }]) {
    assert.throws(() => new Client(wrong), TypeError, JSON.stringify(wrong));
  }
});

test("options that are no object, or have an unknown field, are errors that say what to write", async () => {
  const address = "127.0.0.1:1"; // nobody listens there
  const addressed = /^TypeError: .*new Client\(\{ addresses: \["127\.0\.0\.1:7609"\] \}\)$/;
  for (const wrong of [
    [address],
    address,
    null,
    5,
    [],
    Promise.resolve({}),
    { addrs: [address] },
    { address },
    { host: "a", port: 1 },
  ]) {
    assert.throws(() => new Client(wrong), addressed, JSON.stringify(wrong));
  }
  const client = new Client({ addresses: [address], timeoutMs: 200 });
  const prefetching = new Client({ addresses: [address], timeoutMs: 200, prefetch: 10 });
  assert.throws(() => client.sequence("order", 10), /^TypeError: .* sequence\("order", \{ prefetch: 1000 \}\)$/);
  assert.throws(
    () => client.sequence("order", { prefetsh: 10 }),
    /^TypeError: "prefetsh" is not one of the options prefetch, maxAgeMs\. Write /,
  );
  const order = client.sequence("order");
  for (const wrong of ["order-1", 5, null, ["a"], { Key: "a" }, { timeout: 5 }, { key: "a", timeout: 5 }]) {
    await assert.rejects(order.next(wrong), /^TypeError: .* next\(\{ key: "order-1" \}\)$/, JSON.stringify(wrong));
  }
  for (const wrong of [
    "order-1",
    5,
    null,
    new AbortController().signal,
    { key: "a" },
    { timeout: 5 },
    { toString: 1 },
  ]) {
    const told = /^TypeError: .*\{ timeoutMs: 500 \}\)$/;
    for (const source of [client, prefetching]) {
      await assert.rejects(source.next(wrong), told);
      await assert.rejects(source.nextMany(3, wrong), told);
    }
    await assert.rejects(order.nextMany(3, wrong), told);
    await assert.rejects(order.range(3, wrong), told);
  }
  await Promise.all([client.close(), prefetching.close()]);
});

test("null is no text", async () => {
  for (const wrong of [{ token: null }, { cluster: null }, { tls: "ca.pem" }, { tls: null }]) {
    assert.throws(() => new Client(wrong), TypeError, JSON.stringify(wrong));
  }
  const client = new Client({ addresses: ["127.0.0.1:1"], timeoutMs: 200 });
  for (const wrong of [undefined, null, ["order"]]) assert.throws(() => client.sequence(wrong), TypeError);
  await assert.rejects(client.sequence("order").next({ key: null }), TypeError);
  await client.close();
});

test("wrong arguments of calls are errors before anything is sent", async () => {
  const client = new Client({ addresses: ["127.0.0.1:1"] }); // nobody listens there
  for (const n of [0, 10_001, 1.5, NaN]) await assert.rejects(client.nextMany(n), RangeError);
  await assert.rejects(client.nextMany("5"), TypeError);
  await assert.rejects(client.next({ timeoutMs: 0 }), RangeError);
  for (const name of ["", "5", "a b", "a\n", ":a", "é", "a".repeat(129)]) {
    assert.throws(() => client.sequence(name), RangeError, name);
  }
  const order = client.sequence("order-{5}/x");
  for (const key of ["", "5", "a b", "_a", "a".repeat(65)]) await assert.rejects(order.next({ key }), RangeError, key);
  for (const n of [0, 1_000_001]) await assert.rejects(order.range(n), RangeError);
  await client.close();
});

test("bigintReplacer writes exact strings", () => {
  const text = JSON.stringify({ id: 2n ** 63n - 1n, rows: [{ id: 0n, n: 1 }] }, bigintReplacer);
  assert.equal(text, '{"id":"9223372036854775807","rows":[{"id":"0","n":1}]}');
});
