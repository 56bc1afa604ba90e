/**
 * A replacer for `JSON.stringify`, which throws on a bigint: it writes every bigint as a string, because readers in
 * JavaScript round numbers above 2^53. For Express: `app.set("json replacer", bigintReplacer)`.
 *
 * @example
 * JSON.stringify({ id: await client.next() }, bigintReplacer); // {"id":"2123840319823806551"}
 */
export function bigintReplacer(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
