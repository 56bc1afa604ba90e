package io.github.flaked.client;

import java.time.Duration;

/** A call that ended without values. The classes that extend this one say why; an interrupted call has this class. */
public class FlakedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    FlakedException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * Returns the code of the node's last refusal, such as NOTREADY.
     *
     * @return the code, "" if no node refused the call
     */
    public String code() {
        return "";
    }

    /**
     * Returns the reason of the node's last refusal, such as no-sequence.
     *
     * @return the reason, "" if the node gave none
     */
    public String reason() {
        return "";
    }

    /**
     * Returns how long the node that refused asks not to be asked again.
     *
     * @return the time, zero if the node did not say
     */
    public Duration retryAfter() {
        return Duration.ZERO;
    }
}
