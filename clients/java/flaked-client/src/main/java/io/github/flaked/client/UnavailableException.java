package io.github.flaked.client;

/** No node answered in time. The cause is the last {@link RefusedException}, or the last error of the network. */
public final class UnavailableException extends FlakedException {
    private static final long serialVersionUID = 1;

    UnavailableException(String message, Throwable last) {
        super(message, last instanceof FlakedException e ? e.refusal : "", last);
    }
}
