package io.github.flaked.client;

import java.util.List;

/** What a client has counted: calls that have begun, prefetched values included, and calls that failed. */
public record Stats(long calls, long failures, List<Node> nodes) {
    /**
     * One node. It is healthy until it fails, and again when it has answered. Each failure sent its calls to another
     * node. lastError is "" while it is healthy.
     */
    public record Node(String address, boolean healthy, long failures, String lastError) {}
}
