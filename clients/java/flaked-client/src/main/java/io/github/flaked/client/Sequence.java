package io.github.flaked.client;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * A named sequence, a counter that all nodes share. Any number of threads may use it at once. Its calls end as those of
 * {@link FlakedClient#next()} do. A {@link RefusedException} whose reason is no-sequence, frozen, wrong-mode, no-right,
 * exhausted or too-many needs an operator or another request. After other refusals the call tries other nodes, and
 * again after a moment.
 */
public final class Sequence {
    private final FlakedClient client;
    private final String name;
    private final String next;
    private final Stock stock;

    Sequence(FlakedClient client, String name, Stock stock) {
        this.client = client;
        this.name = name;
        this.stock = stock;
        next = request(name);
    }

    static String request(String name) {
        return "NEXT " + name;
    }

    /**
     * Returns the name of the sequence.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Returns this sequence with another timeout of its calls. Prefetched values are shared.
     *
     * @param timeout how long a call may take
     * @return the view
     */
    public Sequence withTimeout(Duration timeout) {
        return new Sequence(client.withTimeout(timeout), name, stock);
    }

    /**
     * Returns one value.
     *
     * @return the value
     */
    public long next() {
        return client.one(stock, next, true);
    }

    /**
     * Returns one value later, as {@link FlakedClient#nextAsync()} does.
     *
     * @return the future of the value
     */
    public CompletableFuture<Long> nextAsync() {
        return client.oneAsync(stock, next, true);
    }

    /**
     * Returns several values, perhaps with gaps between them.
     *
     * @param n how many, 1 to 10,000
     * @return the values
     */
    public long[] next(int n) {
        Check.count("the number of values", n, 1, Check.MAX_COUNT);
        return client.many(n == 1 ? next : next + " " + n, n, 1, true);
    }

    /**
     * Returns the value that belongs to a key. The same key gets the same value again, from any node, as long as the
     * sequence remembers it. So a call that failed can be repeated without a gap. Only strict sequences have keys.
     *
     * @param key a letter, then letters, digits and _ . : -, at most 64 characters
     * @return the value
     */
    public long next(String key) {
        return client.one(null, next + " " + Check.key(key), true);
    }

    /**
     * Returns values that follow each other.
     *
     * @param n how many, 1 to 1,000,000
     * @return the first and the last value
     */
    public Range range(int n) {
        Check.count("the number of values", n, 1, Check.MAX_RANGE);
        long[] ends = client.many("RANGE " + name + " " + n, 1, 2, true);
        return new Range(ends[0], ends[1]);
    }
}
