package io.github.flaked.client;

import java.net.SocketTimeoutException;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** A node, and whether it may be asked. The pool's monitor guards it. Times are those of {@link Pool#now()}. */
final class Node {
    /** The pause after a refusal that needs an operator, and the longest that a node can ask for. */
    private static final long LONGEST = 5000 * Check.MS;

    final Address address;
    final Connection[] connections = new Connection[3]; // for IDs, for sequences and for the probe
    volatile Request probe; // asks whether the node is ready again, null at other times
    volatile Exception error; // the last failure, null while the node is healthy
    volatile int failures; // to recognise errors of requests that were under way at an earlier one
    long until; // when the pause ends
    private long pause = 20 * Check.MS;

    Node(Address address) {
        this.address = address;
    }

    boolean mayBeAsked(long now) {
        return rank() < 0 || until <= now;
    }

    /** Returns less for a node that is asked earlier: healthy ones, slow ones, then that whose pause ends first. */
    private long rank() {
        // A node was slow if it had less than nodeTimeout. It may be well.
        return error == null ? -2 : error instanceof SocketTimeoutException ? -1 : until;
    }

    /** Returns the node to ask next, null if all are excepted. */
    static Node best(List<Node> nodes, Set<Node> except) {
        Stream<Node> allowed = nodes.stream().filter(node -> !except.contains(node));
        return allowed.min(Comparator.comparingLong(Node::rank)).orElse(null);
    }

    /** Learns that the node answered (null) or failed. Then it has a pause, at random: jitter is 0.5 to 1.5. */
    void settle(Exception e, long now, double jitter) {
        error = e;
        if (e == null) {
            pause = 20 * Check.MS;
            return;
        }
        long length = (long) (pause * jitter);
        if (e instanceof RefusedException refusal) {
            long asked = refusal.retryAfter().toNanos();
            length = refusal.needsOperator() ? LONGEST : Math.min(Math.max(length, asked), LONGEST);
        }
        pause = Math.min(2 * pause, 1000 * Check.MS);
        until = now + length;
        failures++;
    }

    boolean needsOperator() {
        return error instanceof RefusedException refusal && refusal.needsOperator();
    }

    Stats.Node stats() {
        return new Stats.Node(address.text(), error == null, failures, error == null ? "" : error.getMessage());
    }
}
