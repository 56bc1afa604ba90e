package io.github.flaked.client;

import java.util.List;

/**
 * What a client has counted since it was built, for metrics and health checks.
 *
 * @param calls calls that have begun, those that were answered from prefetched values included
 * @param failures calls that ended with an exception
 * @param nodes the nodes, in the order of the addresses
 */
public record Stats(long calls, long failures, List<Node> nodes) {
    /**
     * One node as the client sees it. A node that was never asked counts as healthy.
     *
     * @param address the address, as the client was given it
     * @param healthy false after a failure, until the node has answered again
     * @param failures how often the node failed, so that its calls went to another node
     * @param lastError what the last failure was, "" while the node is healthy
     */
    public record Node(String address, boolean healthy, long failures, String lastError) {}
}
