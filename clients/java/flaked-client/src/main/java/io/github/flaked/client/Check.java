package io.github.flaked.client;

import java.time.Duration;
import java.util.regex.Pattern;

/** Checks arguments before anything is sent. */
final class Check {
    static final int MAX_COUNT = 10_000;
    static final int MAX_RANGE = 1_000_000;
    static final int MAX_PREFETCH = 100_000;

    private static final Pattern NAME = Pattern.compile("(?![0-9]+$)[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}");
    private static final Pattern KEY = Pattern.compile("[A-Za-z][A-Za-z0-9_.:-]{0,63}");
    private static final Pattern TOKEN = Pattern.compile("[!-~]{1,256}");

    private Check() {}

    static int count(String what, int n, int min, int max) {
        require(n >= min && n <= max, what + " is " + n + ", but must be " + min + " to " + max);
        return n;
    }

    static String name(String name) {
        require(
                name != null && NAME.matcher(name).matches(),
                "the name of a sequence must begin with a letter, a digit, _ or {, go on with letters, digits and "
                        + "_ . : - { } /, have more than digits, and at most 128 characters, not: " + shorten(name));
        return name;
    }

    static String key(String key) {
        require(
                key != null && KEY.matcher(key).matches(),
                "a key must begin with a letter, go on with letters, digits and _ . : -, and have at most "
                        + "64 characters, not: " + shorten(key));
        return key;
    }

    static String token(String token) {
        // The message must not show the token.
        require(
                token == null || TOKEN.matcher(token).matches(),
                "the token must be 1 to 256 printable ASCII characters without blanks");
        return token;
    }

    /** Returns a duration in nanoseconds. More than a year counts as a year, so that no sum overflows. */
    static long nanos(String what, Duration d, Duration min) {
        require(d != null && d.compareTo(min) >= 0, what + " is " + d + ", but must be at least " + min);
        return Math.min(d.toSeconds(), 365L * 86_400) == d.toSeconds()
                ? d.toNanos()
                : Duration.ofDays(365).toNanos();
    }

    private static void require(boolean holds, String message) {
        if (!holds) {
            throw new IllegalArgumentException(message);
        }
    }

    private static String shorten(String text) {
        return text == null || text.length() <= 80 ? text : text.substring(0, 80) + "...";
    }
}
