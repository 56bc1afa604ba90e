package io.github.flaked.client;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongSupplier;
import java.util.stream.LongStream;

/** Values that were requested in advance. */
final class Stock {
    final int size;
    final Pool pool;
    final String verb; // GET, or NEXT and the name of a sequence
    LongSupplier wallClock = System::currentTimeMillis; // tests have their own
    private final long maxAge;
    private final Deque<Value> values = new ArrayDeque<>();
    private boolean filling; // a request for the stock is under way
    private long looked = Long.MIN_VALUE; // the wall clock when poll last looked at the age of the first value

    /** A value, by how much the wall clock was ahead when it came, and the life of the process that asked for it. */
    private record Value(long value, long askedAt, long ahead, int life) {}

    Stock(Pool pool, String verb, int size, long maxAge) {
        this.pool = pool;
        this.verb = verb;
        this.size = size;
        this.maxAge = maxAge;
    }

    /** Takes a value that is not too old, or returns -1. */
    long take() {
        Value value = poll();
        return value == null ? -1 : value.value;
    }

    /** Looks at the age of the values once in a millisecond: a clock takes time. */
    private synchronized Value poll() {
        long wall = wallClock.getAsLong();
        Value value = values.poll();
        if (value == null || wall == looked && value.life == pool.life()) {
            return value;
        }
        looked = wall;
        long now = Pool.now();
        while (value != null && !isFresh(value, now, wall * Check.MS - now)) {
            value = values.poll();
        }
        return value;
    }

    /** If the clocks have moved apart, the process was resumed from a snapshot, perhaps more than once. */
    private boolean isFresh(Value value, long now, long ahead) {
        return now - value.askedAt <= maxAge && Math.abs(ahead - value.ahead) <= maxAge && value.life == pool.life();
    }

    private long ahead(long now) {
        return wallClock.getAsLong() * Check.MS - now;
    }

    synchronized boolean hasValues() {
        return !values.isEmpty();
    }

    /** Requests more if half or less is left. A call that found the stock empty must have been sent before. */
    void fill() {
        long now = Pool.now();
        int life = pool.life();
        int missing;
        synchronized (this) {
            boolean no = filling || Thread.currentThread().isInterrupted(); // see Pool.ask
            missing = no || values.size() > size / 2 ? 0 : size - values.size();
            filling |= missing > 0;
        }
        if (missing > 0
                && !pool.prefetch(Query.values(verb, Math.min(missing, 10_000)), more -> add(more, now, life))) {
            add(new long[0], now, life);
        }
    }

    private synchronized void add(long[] more, long askedAt, int life) {
        filling = false;
        long ahead = ahead(Pool.now());
        LongStream.of(more).forEach(value -> values.add(new Value(value, askedAt, ahead, life)));
    }

    /**
     * Returns a value that a call has got, or a lower one of the stock, which then keeps the other one. The call found
     * the stock empty. Values that were on their way then have come before its own.
     */
    synchronized long exchange(long value, long askedAt) {
        Value first = poll();
        if (first == null) {
            return value;
        }
        if (first.value > value) {
            values.addFirst(first);
            return value;
        }
        values.add(new Value(value, askedAt, ahead(Pool.now()), first.life));
        return first.value;
    }
}
