// Rows whose primary keys are IDs from flaked, with Knex. The database is PGlite, a PostgreSQL within the program: for
// a server, use Knex's client "pg".
//
//   npm install ./flaked-node-0.1.0.tgz knex knex-pglite
//   node knex.mjs 127.0.0.1:7609
import { bigintReplacer, Client } from "flaked";
import knex from "knex";
import PGlite from "knex-pglite";

const client = new Client({ addresses: process.argv.slice(2) });
const db = knex({ client: PGlite, dialect: "postgres", connection: {} });

await db.schema.createTable("orders", (table) => {
  table.bigInteger("id").primary();
  table.text("item").notNullable();
});

// One row, and a batch whose IDs come with one request.
await db("orders").insert({ id: await client.next(), item: "book" });
const items = ["lamp", "desk", "chair"];
const ids = await client.nextMany(items.length);
await db("orders").insert(items.map((item, i) => ({ id: ids[i], item })));

// The driver "pg" returns a BIGINT as a string, and PGlite returns a bigint above 2^53. BigInt() takes both.
const rows = await db("orders").orderBy("id");
for (const row of rows) row.id = BigInt(row.id);
const [{ id: batch }] = await db("orders").where({ id: ids[0] });
if (BigInt(batch) !== ids[0]) throw new Error(`the database rounded ${ids[0]} to ${batch}`);
console.log(JSON.stringify(rows, bigintReplacer));

await db.destroy();
