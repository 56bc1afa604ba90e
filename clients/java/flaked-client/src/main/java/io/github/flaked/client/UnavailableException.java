package io.github.flaked.client;

/**
 * No node answered in time. The cause is the last {@link RefusedException} of a node, or the last error of the network.
 * The same call may succeed later.
 */
public final class UnavailableException extends FlakedException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message, Throwable last) {
        super(message, last instanceof FlakedException e ? e.refusal : "", last);
    }
}
