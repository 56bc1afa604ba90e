package io.github.flaked.client;

import java.time.Duration;

/**
 * No node answered in time. The cause is the last {@link RefusedException} of a node, or the last error of the network.
 * The same call may succeed later.
 */
public final class UnavailableException extends FlakedException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message, Throwable last) {
        super(last == null ? message : message + ". The last error was: " + last.getMessage(), last);
    }

    @Override
    public String code() {
        return getCause() instanceof RefusedException refused ? refused.code() : "";
    }

    @Override
    public String reason() {
        return getCause() instanceof RefusedException refused ? refused.reason() : "";
    }

    @Override
    public Duration retryAfter() {
        return getCause() instanceof RefusedException refused ? refused.retryAfter() : Duration.ZERO;
    }
}
