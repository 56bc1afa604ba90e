package io.github.flaked.client;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.stream.LongStream;

/** Values that were requested in advance. */
final class Stock {
    final int size;
    final Pool pool;
    final String verb; // GET, or NEXT and the name of a sequence
    private final long maxAge;
    private final Queue<Value> values = new ArrayDeque<>();
    private boolean filling; // a request for the stock is under way

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
            boolean no = filling || Thread.currentThread().isInterrupted(); // see Pool.ask
            missing = no || values.size() > size / 2 ? 0 : size - values.size();
            filling |= missing > 0;
        }
        if (missing > 0 && !pool.prefetch(Query.values(verb, Math.min(missing, 10_000)), more -> add(more, now))) {
            add(new long[0], now);
        }
        return value == null ? -1 : value.value;
    }

    private synchronized void add(long[] more, long askedAt) {
        filling = false;
        LongStream.of(more).forEach(value -> values.add(new Value(value, askedAt)));
    }
}
