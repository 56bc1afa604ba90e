package io.github.flaked.client;

import java.io.EOFException;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;

/** Asks nodes, and another node when one fails. Its monitor guards the nodes, and is never held during I/O. */
final class Pool {
    private static final long START = System.nanoTime();

    final Options options;
    private final List<Node> nodes;
    private final LongAdder calls = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private volatile boolean closed;
    private volatile CountDownLatch comparison; // null if no nodes are compared
    private volatile int life; // counts the times when this process may have been copied
    private final Object checkpoint = Checkpoint.register(this::beginAnew);

    /** What all connections have in common. The token and tls may be null. */
    record Options(String token, SSLContext tls, long nodeTimeout, Identity identity) {}

    /** A query that may go to several nodes. */
    private static final class Call {
        final Query query;
        final long deadline;
        final Stock stock; // must be filled when the call is sent, null if there is none
        final Set<Node> refused = new HashSet<>(); // by these nodes, for a reason that is about the sequence
        long retryAfter; // how long to wait when all have refused
        long resumeAt; // when that has passed
        Throwable error; // of the last node that was asked

        Call(Query query, long timeout, Stock stock) {
            this.query = query;
            this.stock = stock;
            deadline = now() + timeout;
        }
    }

    Pool(List<Address> addresses, Options options) {
        nodes = addresses.stream().map(Node::new).toList();
        this.options = options;
    }

    /** Returns a time in nanoseconds. Such times can be compared, while those of System.nanoTime may overflow. */
    static long now() {
        return System.nanoTime() - START;
    }

    /** Makes a call of the program. A value of the stock answers it, unless that is null or empty. */
    long[] call(Query query, long timeout, Stock stock) {
        calls.increment();
        try {
            long prefetched = stock == null || closed || options.identity().error() != null ? -1 : stock.take();
            if (prefetched < 0) {
                return ask(new Call(query, timeout, stock));
            }
            stock.fill();
            return new long[] {prefetched};
        } catch (FlakedException e) {
            failures.increment();
            throw e;
        }
    }

    /** Asks one node after the other, until one answers. */
    private long[] ask(Call call) {
        try {
            if (Thread.interrupted()) { // it would close the channel of a unix socket
                throw new InterruptedException();
            }
            while (true) {
                Request request = choose(call);
                try {
                    request.connection.send(request);
                    if (call.stock != null) {
                        call.stock.fill(); // with values above that of the call
                    }
                    long[] values = request.connection.await(request, call.deadline);
                    settle(call, request, null);
                    awaitComparison(call);
                    return values;
                } catch (ExecutionException e) {
                    settle(call, request, e.getCause());
                    if (e.getCause() instanceof RefusedException refusal && refusal.isFinal(call.query)) {
                        throw (RefusedException) refusal.fillInStackTrace(); // else it is that of another thread
                    }
                }
            }
        } catch (TimeoutException e) {
            throw unavailable(call, "answered in time");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FlakedException("the thread was interrupted while it waited", "", e);
        }
    }

    /** Asks the nodes beside the first one that has answered which cluster they belong to. */
    synchronized void compare(Node first) {
        List<Node> others = nodes.stream()
                .filter(node -> node != first && node.error == null && !closed)
                .toList();
        CountDownLatch answers = comparison = new CountDownLatch(others.size());
        for (Node node : others) {
            Connection connection = new Connection(node, this, true);
            int failures = node.failures;
            connection
                    .who
                    .orTimeout(options.nodeTimeout(), TimeUnit.NANOSECONDS)
                    .whenComplete((ok, e) -> {
                        if (e instanceof RefusedException refusal
                                && refusal.code().equals("WRONGNODE")) {
                            fail(node, failures, refusal);
                        }
                        connection.end(new EOFException());
                        answers.countDown();
                    });
        }
    }

    /** Waits until the nodes are compared, for half a second or half of the time that is left, at most. */
    private void awaitComparison(Call call) throws InterruptedException {
        CountDownLatch answers = comparison;
        if (answers != null) {
            long most = Math.min(500 * Check.MS, Math.max(0, call.deadline - now()) / 2);
            answers.await(most, TimeUnit.NANOSECONDS);
            comparison = null;
        }
        RefusedException wrong = options.identity().error();
        if (wrong != null) {
            throw wrong;
        }
    }

    /** Asks one node, and reports whether one can be asked now. The consumer gets the values, or none. */
    boolean prefetch(Query query, Consumer<long[]> consumer) {
        Call call = new Call(query, 2 * options.nodeTimeout(), null);
        Request request = request(call, now());
        return request != null && start(call, request, consumer);
    }

    private boolean start(Call call, Request request, Consumer<long[]> consumer) {
        request.whenComplete((values, e) -> {
            settle(call, request, e);
            consumer.accept(e == null ? values : new long[0]);
        });
        request.connection.send(request);
        return true;
    }

    /** Returns a request to the node to ask next. Waits while that has a pause. */
    private synchronized Request choose(Call call) throws InterruptedException {
        Request request;
        for (long now = now(); (request = request(call, now)) == null; now = now()) {
            Node next = Node.best(nodes, call.refused);
            if (!call.refused.isEmpty()) {
                call.resumeAt = now + Math.max(20 * Check.MS, Math.min(call.retryAfter, 1000 * Check.MS));
                call.refused.clear();
            }
            long until = call.resumeAt > now ? call.resumeAt : next.until;
            if (until >= call.deadline || nodes.stream().allMatch(Node::needsOperator)) {
                throw unavailable(call, "can be asked in time");
            }
            TimeUnit.NANOSECONDS.timedWait(this, until - now);
        }
        return request;
    }

    /** Returns a request to the best node, null if that must not be asked now. */
    private synchronized Request request(Call call, long now) {
        if (closed) {
            throw new ClosedException();
        }
        RefusedException wrong = options.identity().error();
        if (wrong != null) {
            throw wrong;
        }
        probe(now);
        Node node = Node.best(nodes, call.refused);
        if (call.resumeAt > now || node == null || !node.mayBeAsked(now)) {
            return null;
        }
        // While another node is healthy, half of the time is left to ask that one. A busy node needs 25 ms.
        long half = Math.max((call.deadline - now) / 2, 25 * Check.MS);
        boolean alone = nodes.stream().allMatch(other -> other == node || other.error != null);
        long share = Math.min(options.nodeTimeout(), alone ? Long.MAX_VALUE : half);
        return new Request(call.query, connection(node, call.query.ofSequence() ? 1 : 0), share, call.stock);
    }

    private Connection connection(Node node, int which) {
        if (node.connections[which] == null || node.connections[which].ended != null) {
            node.connections[which] = new Connection(node, this);
        }
        return node.connections[which];
    }

    /** Learns from the end of a request whether the node is healthy. The error is null if it has answered. */
    private synchronized void settle(Call call, Request request, Throwable e) {
        Node node = request.connection.node;
        RefusedException refusal = e instanceof RefusedException refused ? refused : null;
        if (e instanceof EOFException || refusal != null && refusal.isFinal(call.query)) {
            return;
        }
        call.error = e;
        if (refusal != null && refusal.isAboutSequence(call.query)) {
            call.retryAfter = refusal.retryAfter().toNanos();
            call.refused.add(node);
        } else {
            fail(node, request.failures, (Exception) e);
        }
    }

    /** Notes a failure, or none. One of a request that had been under way when the node failed changes nothing. */
    private synchronized void fail(Node node, int failures, Exception e) {
        if (failures == node.failures) {
            node.settle(e, now(), ThreadLocalRandom.current().nextDouble(0.5, 1.5));
            notifyAll();
        }
    }

    private UnavailableException unavailable(Call call, String what) {
        Throwable error = call.error == null ? nodes.get(0).error : call.error;
        String why = error == null ? nodes.get(0).address.text() + " did not answer" : error.getMessage();
        return new UnavailableException("no flaked node " + what + ": " + why, error);
    }

    /** Asks failed nodes whether they are ready again, so that no call has to try. */
    private void probe(long now) {
        for (Node node : nodes) {
            Request probe = node.probe; // the thread that reads may set it to null
            if (probe != null) {
                probe.connection.watch(probe);
            } else if (node.error != null && node.until <= now && nodes.stream().anyMatch(each -> each.error == null)) {
                Query ready = new Query("READY", 1, 0, false);
                Request next = node.probe = new Request(ready, connection(node, 2), options.nodeTimeout(), null);
                start(new Call(ready, 0, null), next, ok -> {
                    node.probe = null;
                    next.connection.end(new EOFException());
                });
            }
        }
    }

    synchronized Stats stats() {
        return new Stats(
                calls.sum(), failures.sum(), nodes.stream().map(Node::stats).toList());
    }

    int life() {
        return life;
    }

    /** Drops all stocks and connections: a copy of the process has them, too. Calls are sent again. */
    private synchronized void beginAnew() {
        life++;
        endConnections();
    }

    /** Ends all connections. Calls fail with a {@link ClosedException}. */
    synchronized void close() {
        closed = true;
        endConnections();
        notifyAll();
    }

    private void endConnections() {
        for (Node node : nodes) {
            Stream.of(node.connections).filter(Objects::nonNull).forEach(each -> each.end(new EOFException()));
        }
    }
}
