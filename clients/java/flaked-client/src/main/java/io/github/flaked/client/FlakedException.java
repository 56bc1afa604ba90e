package io.github.flaked.client;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A call that ended without values. The classes that extend this one say why; an interrupted call has this class. */
public class FlakedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The last refusal of a node, CODE text, "" if none refused. */
    final String refusal;

    FlakedException(String message, String refusal, Throwable cause) {
        super(message, cause);
        this.refusal = refusal;
    }

    /** Returns the code of the node's last refusal, such as NOTREADY, "" if no node refused the call. */
    public String code() {
        return refusal.split(" ", 2)[0];
    }

    /** Returns the reason of the node's last refusal, such as no-sequence, "" if the node gave none. */
    public String reason() {
        return field("reason", "\\S+");
    }

    /** Returns how long the node that refused asks not to be asked again, zero if it did not say. */
    public Duration retryAfter() {
        long ms = Long.parseLong("0" + field("retry_after_ms", "[0-9]{1,15}"));
        return Duration.ofMillis(Math.min(ms, 3_600_000));
    }

    private String field(String name, String value) {
        Matcher field = Pattern.compile(" " + name + "=(" + value + ")(?!\\S)").matcher(refusal);
        return field.find() ? field.group(1) : "";
    }
}
