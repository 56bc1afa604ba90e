package io.github.flaked.client;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A call that ended without values. The classes that extend this one say why; an interrupted call has this class. */
public class FlakedException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private static final Pattern REFUSAL = Pattern.compile("-[A-Z]\\S*( .*)?");
    private static final long MAX_RETRY_MS = 3_600_000;

    /** The last refusal of a node, CODE text, "" if none refused. */
    final String refusal;

    FlakedException(String message, String refusal, Throwable cause) {
        super(message, cause);
        this.refusal = refusal;
    }

    static boolean isRefusal(String line) {
        return line.startsWith("-") && REFUSAL.matcher(line).matches();
    }

    /** {@return the code of the node's last refusal, such as NOTREADY, "" if no node refused the call} */
    public String code() {
        return refusal.split(" ", 2)[0];
    }

    /** {@return the reason of the node's last refusal, such as no-sequence, "" if the node gave none} */
    public String reason() {
        return field("reason", "\\S+");
    }

    /** {@return how long the node that refused asks not to be asked again, zero if it did not say} */
    public Duration retryAfter() {
        return Duration.ofMillis(Math.min(Long.parseLong("0" + field("retry_after_ms", "[0-9]{1,15}")), MAX_RETRY_MS));
    }

    private String field(String name, String value) {
        Matcher field = Pattern.compile(" " + name + "=(" + value + ")(?!\\S)").matcher(refusal);
        return field.find() ? field.group(1) : "";
    }
}
