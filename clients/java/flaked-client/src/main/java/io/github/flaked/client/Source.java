package io.github.flaked.client;

/** What gives numbers: a {@link FlakedClient} gives IDs, and a {@link Sequence} its values. Threads may share it. */
public abstract sealed class Source permits FlakedClient, Sequence {
    /** GET, or NEXT and the name of a sequence. */
    final String verb;

    final Stock stock;
    final Pool pool;
    final long timeout;
    private final Query one;

    Source(String verb, Stock stock, long timeout) {
        pool = stock.pool;
        this.verb = verb;
        this.stock = stock;
        this.timeout = timeout;
        one = Query.values(verb, 1);
    }

    /**
     * {@return one number}
     * @throws UnavailableException if no node answered within the timeout
     * @throws RefusedException if a node refused the request itself
     * @throws ClosedException if the client is closed
     */
    public long next() {
        return pool.call(one, timeout, stock.size == 0 ? -1 : stock.take())[0];
    }

    /**
     * {@return several numbers of one request, never prefetched ones} It ends as {@link #next()} does.
     * @param n how many, 1 to 10,000
     */
    public long[] next(int n) {
        return pool.call(Query.values(verb, Check.count("the number of values", n, 1, 10_000)), timeout, -1);
    }
}
