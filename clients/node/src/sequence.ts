import { callNames, checkCount, checkKey, checkName, checkNames, sequenceCallNames } from "./options.js";
import type { CallOptions, PrefetchOptions, SequenceCallOptions } from "./options.js";
import type { Pool } from "./pool.js";
import { queryOne, queryRange } from "./protocol.js";
import { Source } from "./source.js";

/** A named sequence, made by {@link Client.sequence}. If it prefetches, keep the object: the values are in it. */
export class Sequence extends Source {
  /** @internal */
  constructor(
    pool: Pool,
    /** The name of the sequence. */
    readonly name: string,
    options: PrefetchOptions,
  ) {
    super(pool, `NEXT ${checkName(name)}`, options);
  }

  /** Returns one value: the next one, or that of a key. Fails as {@link Client.next} does. */
  override async next(options: SequenceCallOptions = {}): Promise<bigint> {
    checkNames(options, sequenceCallNames, 'next({ key: "order-1" })');
    const { key, signal, timeoutMs } = options;
    if (key === undefined) return super.next({ signal, timeoutMs });
    return this.pool.call(queryOne(`NEXT ${this.name} ${checkKey(key)}`), options);
  }

  /** Returns the first and the last of n values that follow each other without a gap. n is 1 to 1,000,000. */
  async range(n: number, options: CallOptions = {}): Promise<{ first: bigint; last: bigint }> {
    checkNames(options, callNames, "range(1000, { timeoutMs: 500 })");
    return this.pool.call(queryRange(this.name, checkCount("n", n, 1, 1_000_000)), options);
  }
}
