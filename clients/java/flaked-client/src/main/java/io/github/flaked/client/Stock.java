package io.github.flaked.client;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Values that were requested in advance. Any thread may take one, without a lock. */
final class Stock {
    private final Dispatcher dispatcher;
    private final String request;
    private final boolean ofSequence;
    private final int size;
    private final long maxAge;
    private final long timeout;
    /** The answers to the requests, the oldest first. */
    private final Queue<Parcel> parcels = new ConcurrentLinkedQueue<>();

    private final AtomicBoolean filling = new AtomicBoolean();

    /** The values of one reply, of which those before used are taken. Their age counts from the request. */
    private record Parcel(long[] values, long asked, AtomicInteger used) {}

    Stock(Dispatcher dispatcher, String request, boolean ofSequence, int size, long maxAge, long timeout) {
        this.dispatcher = dispatcher;
        this.request = request;
        this.ofSequence = ofSequence;
        this.size = size;
        this.maxAge = maxAge;
        this.timeout = timeout;
    }

    /** Returns a value, or -1 if there is none. Requests more if half or less are left. */
    long take() {
        if (dispatcher.isClosed()) {
            return -1;
        }
        long now = System.nanoTime();
        long value = -1;
        for (Parcel p; value < 0 && (p = parcels.peek()) != null; ) {
            int i = now - p.asked <= maxAge ? p.used.getAndIncrement() : p.values.length;
            if (i < p.values.length) {
                value = p.values[i];
            } else {
                parcels.remove(p);
            }
        }
        int left = left();
        if (left <= size / 2 && filling.compareAndSet(false, true)) {
            fill(Math.min(size - left, Check.MAX_COUNT));
        }
        if (value >= 0) {
            dispatcher.served();
        }
        return value;
    }

    private int left() {
        int left = 0;
        for (Parcel p : parcels) {
            left += Math.max(0, p.values.length - p.used.get());
        }
        return left;
    }

    private void fill(int n) {
        String counted = n == 1 ? request : request + " " + n;
        Call call = new Call(counted, n, 1, ofSequence, timeout);
        call.future.whenComplete((values, error) -> {
            if (error == null) {
                parcels.add(new Parcel(values, call.sentAt, new AtomicInteger()));
            }
            filling.set(false);
        });
        dispatcher.submit(call);
    }
}
