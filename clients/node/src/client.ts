import { checkNames, checkOptions, prefetchNames, type ClientOptions, type PrefetchOptions } from "./options.js";
import { Pool } from "./pool.js";
import { Sequence } from "./sequence.js";
import { Source } from "./source.js";

/**
 * Gets IDs, and values of named sequences, from flaked nodes. A program needs only one client. It connects at the
 * first call, and does not keep the process alive when no call waits.
 *
 * @example
 * const client = new Client({ addresses: ["unix:/run/flaked/flaked.sock", "ids.example.com"] });
 * const id = await client.next();
 */
export class Client extends Source {
  /** A sequence may wait for ZooKeeper. With connections of their own, sequences do not hold up IDs. */
  readonly #sequences: Pool;

  /** Throws a `TypeError` or `RangeError` if an option is wrong. Nodes that are down cause no error here. */
  constructor(options: ClientOptions = {}) {
    const config = checkOptions(options);
    super(new Pool(config), "GET", options);
    this.#sequences = new Pool(config);
  }

  /** Returns the sequence with this name. Throws a `TypeError` or `RangeError` if an argument is wrong. */
  sequence(name: string, options: PrefetchOptions = {}): Sequence {
    checkNames(options, prefetchNames, 'sequence("order", { prefetch: 1000 })');
    return new Sequence(this.#sequences, name, options);
  }

  /**
   * Ends all connections. Calls that wait, and later ones, fail with a {@link ClosedError}. Prefetched values are
   * lost. It may be called more than once.
   */
  async close(): Promise<void> {
    await Promise.all([this.pool.close(), this.#sequences.close()]);
  }

  /** Closes the client at the end of `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
