import assert from "node:assert/strict";
import { test } from "node:test";
import protocol from "../dist/protocol.js";

const { Lines, NotFlakedError, parseRefusal, parseValue, queryMany, queryOne, queryRange, Reply } = protocol;

/** Feeds chunks to the parser. Returns what each complete line makes of the reply. */
function feed(query, ...chunks) {
  const lines = new Lines();
  const reply = new Reply(query);
  const outcomes = chunks.flatMap((chunk) => lines.add(Buffer.from(chunk))).map((line) => reply.add(line));
  return { outcomes, result: query.result(reply.values) };
}

test("a reply that is cut at any byte gives the same values", () => {
  const text = "1\n9223372036854775807\n4194304\n";
  for (let cut = 0; cut <= text.length; cut++) {
    const { outcomes, result } = feed(queryMany("GET", 3), text.slice(0, cut), text.slice(cut));
    assert.deepEqual(outcomes, ["more", "more", "complete"]);
    assert.deepEqual(result, [1n, 2n ** 63n - 1n, 4194304n]);
  }
});

test("a refusal that is cut at any byte is the same refusal", () => {
  const text = "-NOTREADY reason=no-block retry_after_ms=20 ZooKeeper is silent, sorry: ü\n";
  const bytes = Buffer.from(text);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const { outcomes } = feed(queryMany("GET", 3), bytes.subarray(0, cut), bytes.subarray(cut));
    const said = "reason=no-block retry_after_ms=20 ZooKeeper is silent, sorry: ü";
    assert.deepEqual(outcomes, [{ code: "NOTREADY", text: said, reason: "no-block", retryAfterMs: 20 }]);
  }
});

test("a value is 1 to 19 digits that fit into 63 bits", () => {
  for (const good of ["1", "10", "9223372036854775807"]) assert.equal(parseValue(good, 1n), BigInt(good));
  for (const bad of [
    "",
    "01",
    "+1",
    "-1",
    "1.0",
    "0x1",
    " 1",
    "1\r",
    "٣",
    "9223372036854775808",
    "99999999999999999999",
  ]) {
    assert.equal(parseValue(bad, 0n), undefined, bad);
  }
  assert.equal(parseValue("0", 1n), undefined);
  assert.equal(parseValue("0", 0n), 0n);
});

test("an ID is not 0, and a value of a sequence may be", () => {
  assert.throws(() => feed(queryOne("GET"), "0\n"), NotFlakedError);
  assert.equal(feed(queryOne("NEXT order"), "0\n").result, 0n);
});

test("a range is two values in order", () => {
  assert.deepEqual(feed(queryRange("order", 3), "5 7\n").result, { first: 5n, last: 7n });
  for (const bad of ["5\n", "7 5\n", "5  7\n", "5 6 7\n", "5 x\n"]) {
    assert.throws(() => feed(queryRange("order", 3), bad), NotFlakedError, bad);
  }
});

test("a line is bounded, whether it has an end or not", () => {
  assert.throws(() => feed(queryOne("GET"), "-ERR ", "x".repeat(4096)), NotFlakedError);
  assert.throws(() => feed(queryOne("GET"), `-ERR ${"x".repeat(4096)}\n`), NotFlakedError);
});

test("a refusal within a reply is not one of a flaked node", () => {
  assert.throws(() => feed(queryMany("GET", 2), "1\n-NOTREADY stopping\n"), NotFlakedError);
});

test("a refusal needs a code, and its fields are optional", () => {
  for (const bad of ["", "-", "- x", "-5", "OK", "+OK"]) assert.throws(() => parseRefusal(bad), NotFlakedError, bad);
  const refusal = { code: "BUSY", text: "", reason: undefined, retryAfterMs: undefined };
  assert.deepEqual(parseRefusal("-BUSY"), refusal);
  assert.equal(parseRefusal("-CLOCK retry_after_ms=99999999999999").retryAfterMs, 3_600_000);
  for (const bad of ["retry_after_ms=-5", "retry_after_ms=x", "retry_after_ms=", "no_retry_after_ms=5"]) {
    assert.equal(parseRefusal(`-CLOCK ${bad}`).retryAfterMs, undefined, bad);
  }
});
