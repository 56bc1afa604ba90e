package io.github.flaked.client;

import java.time.Duration;

/** Checks arguments before anything is sent. */
final class Check {
    static final long MS = 1_000_000; // nanoseconds

    private Check() {}

    static int count(String what, int n, int min, int max) {
        require(n >= min && n <= max, what + " is " + n + ", but must be " + min + " to " + max);
        return n;
    }

    /** Returns a duration in nanoseconds. More milliseconds than a socket can wait, 24 days, count as so many. */
    static long nanos(String what, Duration d, long min) {
        Duration most = Duration.ofMillis(Integer.MAX_VALUE);
        long nanos = d == null ? 0 : d.compareTo(most) < 0 ? d.toNanos() : most.toNanos();
        require(nanos >= min, what + " is " + d + ", but must be at least " + Duration.ofNanos(min));
        return nanos;
    }

    static void require(boolean holds, String message) {
        if (!holds) {
            throw new IllegalArgumentException(message);
        }
    }
}
