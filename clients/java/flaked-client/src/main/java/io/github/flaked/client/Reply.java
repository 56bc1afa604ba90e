package io.github.flaked.client;

import java.nio.charset.StandardCharsets;

/** Reads lines of replies. */
final class Reply {
    /** Longer than any line of a node. */
    static final int MAX_LINE = 4096;

    private static final int MAX_DIGITS = 19;

    private Reply() {}

    static boolean isOk(byte[] line, int from, int to) {
        return to - from == 2 && line[from] == 'O' && line[from + 1] == 'K';
    }

    /** Parses count numbers with one blank between them into values, and reports whether the line has just these. */
    static boolean numbers(byte[] line, int from, int to, long[] values, int at, int count, long min) {
        int start = from;
        for (int i = 0; i < count; i++) {
            int end = start;
            while (end < to && line[end] != ' ') {
                end++;
            }
            long value = number(line, start, end);
            if (value < min || (end == to) != (i == count - 1)) {
                return false;
            }
            values[at + i] = value;
            start = end + 1;
        }
        return true;
    }

    /** Returns the decimal number in a line, or -1 if there is none of 63 bits. */
    static long number(byte[] line, int from, int to) {
        if (from == to || to - from > MAX_DIGITS || line[from] == '0' && to - from > 1) {
            return -1;
        }
        long value = 0;
        for (int i = from; i < to; i++) {
            int digit = line[i] - '0';
            if (digit < 0 || digit > 9) {
                return -1;
            }
            value = value * 10 + digit; // 19 digits overflow into a negative number at most
        }
        return value < 0 ? -1 : value;
    }

    /** Returns a refusal without its minus sign, or null if the line is not -CODE text. */
    static String refusal(byte[] line, int from, int to) {
        String text = printable(line, from, to);
        return text.matches("-[A-Z][A-Z0-9_]{0,31}( .*)?") ? text.substring(1) : null;
    }

    /** Returns a line so that it can be part of a message. */
    static String printable(byte[] line, int from, int to) {
        return new String(line, from, to - from, StandardCharsets.UTF_8)
                .replaceAll("\\r$", "")
                .replaceAll("\\p{Cntrl}", "?");
    }
}
