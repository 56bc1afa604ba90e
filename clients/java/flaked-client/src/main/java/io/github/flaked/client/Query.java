package io.github.flaked.client;

/** The text of a request. Its reply has lines, each with so many numbers: 1, 2 for the ends of a range, 0 for OK. */
record Query(String text, int lines, int perLine, boolean ofSequence) {
    /** Returns a query for n numbers. The verb is GET or that of a sequence: NEXT name. */
    static Query values(String verb, int n) {
        return new Query(n == 1 ? verb : verb + " " + n, n, 1, !verb.equals("GET"));
    }

    /** Parses a line of the reply into values, and reports whether it can be one. */
    boolean accept(String line, long[] values, int at) {
        if (perLine == 0) {
            return line.equals("OK");
        }
        int blank = perLine == 1 ? -1 : line.indexOf(' ');
        long last = number(line.substring(blank + 1));
        values[at + perLine - 1] = last;
        values[at] = blank >= 0 ? number(line.substring(0, blank)) : perLine == 1 ? last : -1;
        return values[at] >= (ofSequence ? 0 : 1) && values[at] <= last;
    }

    /** Returns the number in a text, or -1 if it is not a decimal number of 63 bits. */
    static long number(String text) {
        boolean digits = !text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9');
        boolean legal = digits && text.length() <= 19 && (text.length() == 1 || text.charAt(0) != '0');
        return legal ? Math.max(Long.parseUnsignedLong(text), -1) : -1; // those of 64 bits are negative
    }
}
