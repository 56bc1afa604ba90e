package io.github.flaked.client;

/** The client was closed before or during the call. */
public final class ClosedException extends FlakedException {
    private static final long serialVersionUID = 1;

    ClosedException() {
        super("the flaked client is closed. Close it only after the last call", "", null);
    }
}
