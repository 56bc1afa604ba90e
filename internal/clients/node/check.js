// The checks of both programs. IDs are printed one a line.

export function strings(what, value, n) {
  const ids = n === undefined ? [value] : value
  if (!Array.isArray(ids) || ids.length !== (n ?? 1) || !ids.every(id => typeof id === 'string' && /^[1-9][0-9]*$/.test(id))) {
    throw new Error(`${what}: ${JSON.stringify(value)}`)
  }
  for (const id of ids) console.log(id)
  return ids
}

export function same(what, got, want) {
  if (got !== want) throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`)
}

export async function fails(what, promise, want) {
  const e = await promise.then(() => undefined, e => e)
  if (!e?.message?.startsWith(want)) throw new Error(`${what}: ${e?.message}, not ${want}`)
}
