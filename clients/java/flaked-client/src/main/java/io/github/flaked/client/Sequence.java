package io.github.flaked.client;

import java.time.Duration;

/**
 * A named sequence, a counter that all nodes share. A {@link RefusedException} whose reason is no-sequence, frozen,
 * wrong-mode, no-right, exhausted or too-many needs an operator or another request. After other refusals the call tries
 * other nodes, and again after a moment.
 */
public final class Sequence extends Source {
    Sequence(String verb, Stock stock, long timeout) {
        super(verb, stock, timeout);
    }

    /**
     * {@return this sequence with another timeout of its calls} Prefetched values are shared.
     * @param timeout how long a call may take
     */
    public Sequence withTimeout(Duration timeout) {
        return new Sequence(verb, stock, Check.nanos("the timeout", timeout, 1));
    }

    /**
     * {@return the value that belongs to a key, the same one again from any node} So a call that failed can be repeated
     * without a gap. Only strict sequences have keys.
     * @param key a letter, then letters, digits and _ . : -, at most 64 characters
     */
    public long next(String key) {
        String rule = "a key must begin with a letter, go on with letters, digits and _ . : -, and have at most 64";
        Check.require(key.matches("[A-Za-z][A-Za-z0-9_.:-]{0,63}"), rule);
        return pool.call(Query.values(verb + " " + key, 1), timeout, -1)[0];
    }

    /**
     * {@return the ends of n values that follow each other}
     * @param n how many, 1 to 1,000,000
     */
    public Range range(int n) {
        Check.count("the number of values", n, 1, 1_000_000);
        long[] ends = pool.call(new Query(verb.replace("NEXT", "RANGE") + " " + n, 1, 2, true), timeout, -1);
        return new Range(ends[0], ends[1]);
    }
}
