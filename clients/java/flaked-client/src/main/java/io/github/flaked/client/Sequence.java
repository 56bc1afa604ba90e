package io.github.flaked.client;

import java.time.Duration;

/**
 * A named sequence, a counter that all nodes share. Its {@link RefusedException} has the reason no-sequence, frozen,
 * wrong-mode, no-right, exhausted or too-many. After other refusals a call tries other nodes, and again after a moment.
 */
public final class Sequence extends Source {
    Sequence(Stock stock, long timeout) {
        super(stock, timeout);
    }

    /** Returns this sequence with another timeout of its calls. Prefetched values are shared. */
    public Sequence withTimeout(Duration timeout) {
        return new Sequence(stock, Check.nanos("the timeout", timeout, 1));
    }

    /**
     * Returns the value that belongs to a key, the same one again from any node. So a call that failed can be repeated
     * without a gap. Only strict sequences have keys: a letter, then letters, digits and _ . : -, at most 64 in all.
     */
    public long next(String key) {
        String rule = "a key must begin with a letter, go on with letters, digits and _ . : -, and have at most 64";
        Check.require(key.matches("[A-Za-z][A-Za-z0-9_.:-]{0,63}"), rule);
        return stock.pool.call(Query.values(stock.verb + " " + key, 1), timeout, null)[0];
    }

    /** Returns the ends of 1 to 1,000,000 values that follow each other. */
    public Range range(int n) {
        Check.count("the number of values", n, 1, 1_000_000);
        Query query = new Query(stock.verb.replaceFirst("NEXT", "RANGE") + " " + n, 1, 2, true);
        long[] ends = stock.pool.call(query, timeout, null);
        return new Range(ends[0], ends[1]);
    }
}
