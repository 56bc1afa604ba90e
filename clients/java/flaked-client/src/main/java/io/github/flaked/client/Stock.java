package io.github.flaked.client;

import java.util.ArrayDeque;
import java.util.Queue;

/** Values that were requested in advance. */
final class Stock {
    static final int MOST = 100_000;

    final int size;
    final Pool pool;
    private final String verb;
    private final long maxAge;
    private final Queue<Value> values = new ArrayDeque<>();
    /** Whether a request for the stock is under way. */
    private boolean filling;

    private record Value(long value, long askedAt) {}

    Stock(Pool pool, String verb, int size, long maxAge) {
        this.pool = pool;
        this.verb = verb;
        this.size = size;
        this.maxAge = maxAge;
    }

    /** Takes a value that is not too old, or returns -1. Requests more if half or less is left. */
    long take() {
        long now = Pool.now();
        Value value;
        int missing;
        synchronized (this) {
            do {
                value = values.poll();
            } while (value != null && now - value.askedAt > maxAge);
            missing = filling || values.size() > size / 2 ? 0 : size - values.size();
            filling |= missing > 0;
        }
        if (missing > 0) {
            pool.prefetch(Query.values(verb, Math.min(missing, 10_000)), more -> add(more, now));
        }
        return value == null ? -1 : value.value;
    }

    private synchronized void add(long[] more, long askedAt) {
        filling = false;
        for (long value : more) {
            values.add(new Value(value, askedAt));
        }
    }
}
