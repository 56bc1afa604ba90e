import { checkCount, checkKey, checkName, type CallOptions, type PrefetchOptions } from "./options.js";
import type { Pool } from "./pool.js";
import { queryOne, queryRange } from "./protocol.js";
import { Source } from "./source.js";

/** The limits of one call for a value of a sequence, and its key. */
export interface SequenceCallOptions extends CallOptions {
  /**
   * For strict sequences only: a call with the same key gets the same value again, from any node, so that a call that
   * failed can be repeated without a gap. A letter, then letters, digits and `_ . : -`, at most 64 characters.
   */
  key?: string | undefined;
}

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
    if (options.key === undefined) return super.next(options);
    return this.pool.call(queryOne(`NEXT ${this.name} ${checkKey(options.key)}`), options);
  }

  /** Returns the first and the last of n values that follow each other without a gap. n is 1 to 1,000,000. */
  async range(n: number, options: CallOptions = {}): Promise<{ first: bigint; last: bigint }> {
    return this.pool.call(queryRange(this.name, checkCount("n", n, 1, 1_000_000)), options);
  }
}
