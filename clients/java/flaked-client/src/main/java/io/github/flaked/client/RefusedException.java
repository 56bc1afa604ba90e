package io.github.flaked.client;

import java.time.Duration;

/** A node refused the call, and no other node can help: the call or the configuration must be corrected. */
public final class RefusedException extends FlakedException {
    private static final long serialVersionUID = 1;

    private static final long MAX_RETRY_MS = 3_600_000;

    /** The address of the node. */
    private final String address;
    /** The node's reply without its first character: CODE text. */
    private final String reply;

    RefusedException(String address, String reply) {
        super(address + " answered -" + reply, null);
        this.address = address;
        this.reply = reply;
    }

    /**
     * Returns the address of the node that refused.
     *
     * @return the address, as the client was given it
     */
    public String address() {
        return address;
    }

    @Override
    public String code() {
        int end = reply.indexOf(' ');
        return end < 0 ? reply : reply.substring(0, end);
    }

    @Override
    public String reason() {
        return field("reason=");
    }

    @Override
    public Duration retryAfter() {
        String ms = field("retry_after_ms=");
        boolean number = !ms.isEmpty() && ms.length() <= 9 && ms.chars().allMatch(c -> c >= '0' && c <= '9');
        return number ? Duration.ofMillis(Math.min(Long.parseLong(ms), MAX_RETRY_MS)) : Duration.ZERO;
    }

    private String field(String name) {
        for (String word : reply.split(" ")) {
            if (word.startsWith(name)) {
                return word.substring(name.length());
            }
        }
        return "";
    }

    /** Reports whether the node refuses everything until an operator acts. */
    boolean isLasting() {
        return switch (code()) {
            case "NOAUTH", "WRONGPASS" -> true;
            case "EXHAUSTED" -> reason().isEmpty();
            default -> false;
        };
    }

    /** Reports whether the request is wrong, so that no other node would answer it. */
    boolean isOfRequest() {
        return code().equals("ERR") || code().equals("NOPERM");
    }

    /** Reports whether the request is wrong, or no node and no later time would give a value of the sequence. */
    boolean isOfSequenceForGood() {
        return switch (reason()) {
            case "no-sequence", "frozen", "wrong-mode", "no-right", "exhausted", "too-many" -> true;
            default -> !code().equals("NOTREADY");
        };
    }
}
