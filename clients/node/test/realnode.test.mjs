import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, URL } from "node:url";
import { promisify } from "node:util";
import { Client } from "../dist/index.mjs";
import { skip, startSite } from "./site.mjs";

const here = fileURLToPath(new URL(".", import.meta.url)); // Node 18 has no import.meta.dirname

const run = promisify(execFile);
const directory = join(here, "..");

test("a real node", { skip }, async (t) => {
  const site = await startSite(t);
  const a = await site.startNode();
  const b = await site.startNode();
  await site.flaked("seq", "create", "order");
  await site.flaked("seq", "create", "invoice", "--mode", "strict");

  await t.test("IDs, values, ranges and keys", async (t) => {
    const client = new Client({ addresses: [a.address, b.address], timeoutMs: 20_000 });
    t.after(() => client.close());
    const ids = [await client.next(), ...(await client.nextMany(10_000))];
    assert.equal(new Set(ids).size, 10_001);
    const order = client.sequence("order");
    const { first, last } = await order.range(100);
    assert.equal(last - first, 99n);
    assert.ok((await order.next()) > last);
    assert.equal((await order.nextMany(3)).length, 3);
    const invoice = client.sequence("invoice");
    const value = await invoice.next({ key: "payment-5" });
    assert.equal(await invoice.next({ key: "payment-5" }), value);
    await assert.rejects(client.sequence("missing").next(), { name: "RefusedError", reason: "no-sequence" });
  });

  await t.test("the program of the README", async (t) => {
    const readme = await readFile(join(directory, "README.md"), "utf8");
    const [, program] = /```js\n([\s\S]*?)```/.exec(readme);
    const mine = program.replace(/addresses: \[[^\]]*\]/, `addresses: ["${a.address}"]`);
    assert.notEqual(mine, program);
    // Within this package, "flaked" is this package.
    const dir = await mkdtemp(join(directory, "readme-"));
    t.after(() => rm(dir, { recursive: true }));
    await writeFile(join(dir, "program.mjs"), mine);
    const { stdout } = await run(process.execPath, [join(dir, "program.mjs")]);
    assert.match(stdout, /^\{"id":"\d{16,19}"\}\n\d+n 100n?\n$/);
    const page = await readFile(join(directory, "../../docs/clients.md"), "utf8");
    const [, start] = /```js\n(const client = [\s\S]*?)```/.exec(page);
    const begin = 'import { Client } from "flaked";\n';
    await writeFile(
      join(dir, "start.mjs"),
      begin + start.replace("127.0.0.1:7609", a.address) + "console.log(id, number);",
    );
    assert.match((await run(process.execPath, [join(dir, "start.mjs")])).stdout, /^\d{16,19}n \d+n\n$/);
  });

  await t.test("the example with Knex", async () => {
    const { stdout } = await run(process.execPath, [join(directory, "examples/knex.mjs"), a.address, b.address]);
    const rows = JSON.parse(stdout);
    assert.deepEqual(
      rows.map((row) => row.item),
      ["book", "lamp", "desk", "chair"],
    );
    for (const { id } of rows) assert.ok(BigInt(id) > 2n ** 53n, id);
    assert.equal(new Set(rows.map((row) => row.id)).size, 4);
  });
});
