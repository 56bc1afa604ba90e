package io.github.flaked.client;

/** What gives numbers: a {@link FlakedClient} gives IDs, and a {@link Sequence} its values. Threads may share it. */
public abstract sealed class Source permits FlakedClient, Sequence {
    final Stock stock;
    final long timeout;
    private final Query one;

    Source(Stock stock, long timeout) {
        this.stock = stock;
        this.timeout = timeout;
        one = Query.values(stock.verb, 1);
    }

    /**
     * Returns one number.
     * @throws UnavailableException if no node answered within the timeout
     * @throws RefusedException if a node refused the request itself
     * @throws ClosedException if the client is closed
     */
    public long next() {
        return stock.pool.call(one, timeout, stock.size == 0 ? null : stock)[0];
    }

    /** Returns 1 to 10,000 numbers of one request, never prefetched ones. It ends as {@link #next()} does. */
    public long[] next(int n) {
        Check.count("the number of values", n, 1, 10_000);
        return stock.pool.call(Query.values(stock.verb, n), timeout, null);
    }
}
