package io.github.flaked.client;

import java.net.InetAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** One node and its state. The dispatcher's thread owns it; only what is volatile is read by others. */
final class Node {
    static final long PAUSE_FIRST = TimeUnit.MILLISECONDS.toNanos(20);
    static final long PAUSE_MOST = TimeUnit.SECONDS.toNanos(1);
    /** The pause after a refusal that needs an operator. A node whose clock is an hour ahead asks for no more either. */
    static final long PAUSE_LONG = TimeUnit.SECONDS.toNanos(5);

    private final Address address;
    /** The last failure, null while the node is healthy. */
    private volatile Exception error;

    private volatile long failures;
    /** Failures since the node was healthy. */
    private int inRow;
    /** When the pause of a node that failed ends. */
    private long until;
    /** The node did not answer a call that had less than nodeTimeout left. It may be well. */
    private boolean slow;
    /** Counts failures. An error of a request that was sent in an earlier epoch changes nothing. */
    private int epoch;

    private Conn ids;
    private Conn values;
    /** The look-up of the host name that began last. One that hangs is shared, so that threads do not pile up. */
    CompletableFuture<InetAddress[]> lookup;
    /** Which of the host's addresses is tried first. */
    int addressIndex;

    boolean probing;

    Node(Address address) {
        this.address = address;
    }

    Address address() {
        return address;
    }

    int epoch() {
        return epoch;
    }

    long until() {
        return until;
    }

    Exception error() {
        return error;
    }

    boolean isHealthy() {
        return error == null;
    }

    boolean mayBeAsked(long now) {
        return isHealthy() || slow || until - now <= 0;
    }

    /** Reports whether the node should be asked instead of one that is earlier in the order of the addresses. */
    boolean isBefore(Node other) {
        int mine = rank();
        int others = other.rank();
        return mine < others || mine == others && mine > 0 && until - other.until < 0;
    }

    private int rank() {
        if (isHealthy()) {
            return 0;
        }
        return slow ? 1 : 2;
    }

    boolean refusesLastingly() {
        return error instanceof RefusedException refused && refused.isLasting();
    }

    /**
     * Takes the node out of use.
     *
     * @param hurried the node was silent, but had less than nodeTimeout
     * @param sentIn the epoch in which the request was sent
     */
    void failed(Exception e, boolean hurried, int sentIn, long now) {
        if (sentIn != epoch && (!slow || hurried)) {
            return;
        }
        epoch++;
        failures++;
        slow = hurried;
        error = e;
        until = now + pause(e, ++inRow, ThreadLocalRandom.current().nextDouble(0.5, 1.5));
    }

    /** Returns how long a node is not asked after so many failures in a row, the last of which was e. */
    static long pause(Exception e, int inRow, double jitter) {
        long pause = (long) (Math.min(PAUSE_FIRST << Math.min(inRow - 1, 10), PAUSE_MOST) * jitter);
        if (!(e instanceof RefusedException refused)) {
            return pause;
        }
        return refused.isLasting()
                ? PAUSE_LONG
                : Math.min(Math.max(pause, refused.retryAfter().toNanos()), PAUSE_LONG);
    }

    /** Makes the node healthy, and reports whether it was not. */
    boolean answered() {
        boolean news = !isHealthy();
        error = null;
        slow = false;
        inRow = 0;
        return news;
    }

    /** Returns the connection for IDs or for sequences. */
    Conn connection(Dispatcher dispatcher, boolean ofSequence) {
        Conn conn = ofSequence ? values : ids;
        if (conn == null) {
            conn = new Conn(dispatcher, this);
            if (ofSequence) {
                values = conn;
            } else {
                ids = conn;
            }
        }
        return conn;
    }

    void forget(Conn conn) {
        ids = ids == conn ? null : ids;
        values = values == conn ? null : values;
    }

    Stats.Node stats() {
        Exception e = error;
        return new Stats.Node(address.text(), e == null, failures, e == null ? "" : e.getMessage());
    }
}
