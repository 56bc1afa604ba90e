package io.github.flaked.client;

import java.net.SocketTimeoutException;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A node, and whether it may be asked. The pool's monitor guards it. Times are those of {@link Pool#now()}. */
final class Node {
    static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(20);
    static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(1);
    /** The pause after a refusal that needs an operator, and the longest that a node can ask for. */
    static final long OPERATOR_PAUSE = TimeUnit.SECONDS.toNanos(5);

    final Address address;
    /** The connections for IDs, for sequences and for the probe. */
    final Connection[] connections = new Connection[3];
    /** Asks whether the node is ready again, null at other times. */
    volatile Request probe;
    /** The last failure, null while the node is healthy. */
    volatile Exception error;
    /** Counts failures, to recognise errors of requests that were under way at an earlier one. */
    volatile int failures;
    /** When the pause ends. */
    long until;

    private long pause = FIRST_PAUSE;

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

    boolean needsOperator() {
        return error instanceof RefusedException refusal && refusal.needsOperator();
    }

    /** Begins a pause, which is at random: jitter is 0.5 to 1.5. */
    void fail(Exception e, long now, double jitter) {
        long length = (long) (pause * jitter);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
        error = e;
        failures++;
        if (e instanceof RefusedException refusal) {
            long asked = needsOperator() ? OPERATOR_PAUSE : refusal.retryAfter().toNanos();
            length = Math.min(Math.max(length, asked), OPERATOR_PAUSE);
        }
        until = now + length;
    }

    void restore() {
        error = null;
        pause = FIRST_PAUSE;
    }

    Stats.Node stats() {
        return new Stats.Node(address.text(), error == null, failures, error == null ? "" : error.getMessage());
    }
}
