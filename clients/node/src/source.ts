import { callNames, checkCount, checkMs, checkNames, type CallOptions, type PrefetchOptions } from "./options.js";
import type { Pool } from "./pool.js";
import { queryMany, queryOne, type Query } from "./protocol.js";
import { Stock } from "./stock.js";

/** The most values of one request. */
const mostValues = 10_000;

/** What gives numbers: a {@link Client} gives IDs, and a {@link Sequence} gives its values. */
export abstract class Source {
  readonly #verb: string;
  readonly #one: Query<bigint>;
  readonly #stock: Stock | undefined;

  /** @internal */
  protected constructor(
    /** @internal */
    protected readonly pool: Pool,
    verb: string,
    options: PrefetchOptions,
  ) {
    this.#verb = verb;
    this.#one = queryOne(verb);
    const size = checkCount("prefetch", options.prefetch ?? 0, 0, 100_000);
    const maxAgeMs = checkMs("maxAgeMs", options.maxAgeMs, 1000);
    if (size > 0) this.#stock = new Stock(size, maxAgeMs);
  }

  /**
   * Returns one ID, or one value of the sequence. Asks one node after the other until one answers, or time is up.
   * Fails with an {@link UnavailableError} if no node answers in time, a {@link RefusedError} if a node refuses and
   * no other one would help, a {@link ClosedError}, or the reason of an aborted signal.
   */
  async next(options: CallOptions = {}): Promise<bigint> {
    checkNames(options, callNames, "next({ timeoutMs: 500 })");
    const stock = this.#stock;
    if (stock === undefined || this.pool.closed) return this.pool.call(this.#one, options);
    checkMs("timeoutMs", options.timeoutMs, 1);
    options.signal?.throwIfAborted();
    const taken = stock.next();
    const more = stock.lacks(mostValues);
    return taken !== undefined && more === 0 ? taken : this.#refill(stock, taken, more, options);
  }

  /** Asks for `more` values for the stock, and for one for the caller if none was taken. It is apart for speed. */
  async #refill(stock: Stock, taken: bigint | undefined, more: number, options: CallOptions): Promise<bigint> {
    const asked = performance.now();
    // The request for the stock goes out after that of the call, so that the stock has the later values.
    const call = taken ?? this.pool.call(this.#one, options);
    if (more > 0) {
      const filled = (values: bigint[]) => stock.filled(values, asked, performance.now());
      this.pool.call(queryMany(this.#verb, more), {}, true).then(filled, () => filled([]));
    }
    return taken ?? stock.exchange(await call, asked, performance.now());
  }

  /** Returns n numbers of one node, or fails as `next` does and returns none. n is 1 to 10,000. */
  async nextMany(n: number, options: CallOptions = {}): Promise<bigint[]> {
    checkNames(options, callNames, "nextMany(100, { timeoutMs: 500 })");
    return this.pool.call(queryMany(this.#verb, checkCount("n", n, 1, mostValues)), options);
  }
}
