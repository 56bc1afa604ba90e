package io.github.flaked.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * Chooses the node for each call. One thread does all I/O and owns all state, so nothing needs a lock, and an interrupt
 * of a caller cannot close a channel.
 */
final class Dispatcher {
    /** The least time that a node has to answer, however close the deadline of a call is. */
    static final long MIN_SHARE = TimeUnit.MILLISECONDS.toNanos(25);

    private static final long RETRY_MIN = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long RETRY_MAX = TimeUnit.SECONDS.toNanos(1);
    private static final long IDLE = TimeUnit.HOURS.toNanos(1);
    private static final int MAX_TASKS = 1024;

    private final List<Node> nodes;
    private final Config config;
    private final Selector selector;
    private final Thread thread;
    /** For what may block: look-ups of names, and the computations of TLS. */
    private final ExecutorService helpers;

    private final Queue<Runnable> inbox = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean asleep = new AtomicBoolean();
    private volatile boolean closed;
    private volatile boolean ended;
    private final LongAdder calls = new LongAdder();
    private final LongAdder failures = new LongAdder();

    private final Set<Conn> conns = new LinkedHashSet<>();
    private final Set<Conn> dirty = new LinkedHashSet<>();
    /** Calls that cannot be sent to a node now. */
    private List<Call> waiting = new ArrayList<>();
    /** A node has become healthy, so calls that wait for one go on. */
    private boolean recovered;

    private long now = System.nanoTime();
    private long wakeAt = now + IDLE;

    Dispatcher(List<Node> nodes, Config config) {
        this.nodes = nodes;
        this.config = config;
        try {
            selector = Selector.open();
        } catch (IOException e) {
            throw new UncheckedIOException("no selector. Check the limit of open files", e);
        }
        helpers = Executors.newCachedThreadPool(task -> daemon(task, "flaked-client-helper"));
        thread = daemon(this::run, "flaked-client");
        thread.start();
    }

    private static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    // What any thread may call.

    /** Submits a caller's call, which is counted. */
    Call start(Call call) {
        calls.increment();
        call.future.whenComplete((values, error) -> {
            if (error != null) {
                failures.increment();
            }
        });
        submit(call);
        return call;
    }

    void submit(Call call) {
        post(() -> route(call));
    }

    void post(Runnable task) {
        inbox.add(task);
        if (ended) {
            runTasks();
        } else if (asleep.get() && asleep.compareAndSet(true, false)) {
            selector.wakeup();
        }
    }

    boolean isClosed() {
        return closed;
    }

    Stats stats() {
        return new Stats(
                calls.sum(), failures.sum(), nodes.stream().map(Node::stats).toList());
    }

    /** Counts a call that was answered from a stock. */
    void served() {
        calls.increment();
    }

    void close() {
        closed = true;
        selector.wakeup();
        try {
            thread.join(TimeUnit.SECONDS.toMillis(1)); // it never blocks
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Starts a task that may block in another thread. */
    void help(Runnable task) {
        try {
            helpers.execute(task);
        } catch (RejectedExecutionException | OutOfMemoryError e) {
            // The client is closed, or there is no thread: the connection that needs the task ends when its time is up.
        }
    }

    CompletableFuture<InetAddress[]> lookup(String host) {
        CompletableFuture<InetAddress[]> found = new CompletableFuture<>();
        help(() -> {
            try {
                found.complete(InetAddress.getAllByName(host));
            } catch (UnknownHostException e) {
                found.completeExceptionally(e);
            }
        });
        return found;
    }

    // The rest belongs to the thread.

    Config config() {
        return config;
    }

    Selector selector() {
        return selector;
    }

    Set<Conn> conns() {
        return conns;
    }

    long now() {
        return now;
    }

    void dirty(Conn conn) {
        dirty.add(conn);
    }

    static long earlier(long a, long b) {
        return a - b < 0 ? a : b;
    }

    /** Makes the thread look at all deadlines at this time. */
    void alarm(long at) {
        wakeAt = earlier(wakeAt, at);
    }

    private void run() {
        Throwable cause = null;
        try {
            while (!closed) {
                turn();
            }
        } catch (Throwable e) { // without this thread, callers must not wait
            cause = e;
        }
        end(cause);
    }

    /** Replies are read before deadlines are looked at: after a suspension of the process they have come already. */
    private void turn() throws IOException {
        asleep.set(true);
        long sleep = wakeAt - System.nanoTime();
        if (!inbox.isEmpty() || sleep <= 0) {
            selector.selectNow();
        } else {
            selector.select(TimeUnit.NANOSECONDS.toMillis(sleep) + 1);
        }
        asleep.set(false);
        now = System.nanoTime();
        for (SelectionKey key : selector.selectedKeys()) {
            if (key.isValid()) {
                ((Conn) key.attachment()).ready();
            }
        }
        selector.selectedKeys().clear();
        runTasks();
        if (wakeAt - now <= 0) {
            wakeAt = now + IDLE;
            List.copyOf(conns).forEach(conn -> conn.tick(now));
            resume();
        } else if (recovered) {
            resume();
        }
        List<Conn> written = List.copyOf(dirty);
        dirty.clear();
        written.forEach(Conn::flush);
    }

    private void runTasks() {
        Runnable task;
        for (int i = 0; i < MAX_TASKS && (task = inbox.poll()) != null; i++) {
            task.run();
        }
    }

    /** Gives a call to a node, lets it wait for one, or ends it. */
    void route(Call call) {
        if (call.isDone()) {
            return;
        }
        if (closed) {
            call.fail(new ClosedException(null));
            return;
        }
        if (call.deadline - now <= 0) {
            call.expire();
            return;
        }
        probe();
        Node best = pick(call);
        boolean ready = best != null && best.mayBeAsked(now);
        if (ready) {
            ask(best, call);
        } else if (!call.refused.isEmpty()) {
            retryLater(call);
        } else if (best.until() - call.deadline >= 0 || nodes.stream().allMatch(Node::refusesLastingly)) {
            Exception last = call.last == null ? best.error() : call.last;
            call.fail(new UnavailableException("no flaked node can be asked in time", last));
        } else {
            suspend(call, best.until());
        }
    }

    void ask(Node node, Call call) {
        call.ask(node, now, limit(call, node));
        node.connection(this, call.ofSequence).send(call);
    }

    /** Returns the best node that has not refused the call, null if all have. */
    private Node pick(Call call) {
        Node best = null;
        for (Node node : nodes) {
            if (!call.refused.contains(node) && (best == null || node.isBefore(best))) {
                best = node;
            }
        }
        return best;
    }

    /** Returns how long a node may take to answer a call. */
    private long limit(Call call, Node node) {
        long limit = config.nodeTimeout();
        if (isOneHealthy(node)) {
            limit = Math.min(limit, (call.deadline - now) / 2); // leaves time to ask the other one
        }
        return Math.max(limit, Math.min(MIN_SHARE, config.nodeTimeout()));
    }

    /** Reports whether a node is healthy, leaving one out. */
    private boolean isOneHealthy(Node leftOut) {
        for (Node node : nodes) {
            if (node != leftOut && node.isHealthy()) {
                return true;
            }
        }
        return false;
    }

    private void suspend(Call call, long resumeAt) {
        call.resumeAt = resumeAt;
        waiting.add(call);
        alarm(earlier(resumeAt, call.deadline));
    }

    /** Lets a call that every node has refused begin anew after a moment. */
    private void retryLater(Call call) {
        long wait = RETRY_MIN;
        if (call.last instanceof RefusedException refused) {
            wait = Math.max(wait, Math.min(refused.retryAfter().toNanos(), RETRY_MAX));
        }
        if (now + wait - call.deadline >= 0) {
            call.fail(new UnavailableException("every flaked node refused", call.last));
        } else {
            suspend(call, now + wait);
        }
    }

    private void resume() {
        List<Call> all = waiting;
        waiting = new ArrayList<>();
        for (Call call : all) {
            boolean due = call.resumeAt - now <= 0 || call.deadline - now <= 0;
            if (due || recovered && call.refused.isEmpty()) {
                call.refused = List.of();
                route(call);
            } else if (!call.isDone()) {
                suspend(call, call.resumeAt);
            }
        }
        recovered = false;
    }

    void answered(Node node, Call call) {
        if (!call.pinned) {
            recovered |= node.answered();
        }
        call.complete();
    }

    void refused(Node node, Call call, RefusedException refusal) {
        if (call.pinned) {
            call.fail(refusal);
            return;
        }
        call.last = refusal;
        boolean ofSequence = call.ofSequence && !refusal.reason().isEmpty();
        if (refusal.isOfRequest() || ofSequence && refusal.isOfSequenceForGood()) {
            call.fail(refusal);
            return;
        }
        if (ofSequence) {
            call.refusedBy(node);
        } else {
            node.failed(refusal, false, call.epoch, now);
        }
        route(call);
    }

    /** Asks failed nodes whose pause is over if they are ready, while another node is healthy. */
    private void probe() {
        for (Node node : nodes) {
            if (node.isHealthy() || node.probing || node.until() - now > 0 || !isOneHealthy(node)) {
                continue;
            }
            node.probing = true;
            Call ready = Call.pinned("READY");
            ready.ask(node, now, config.nodeTimeout());
            Conn conn = new Conn(this, node);
            ready.future.whenComplete((ok, error) -> {
                node.probing = false;
                if (error == null) {
                    recovered |= node.answered();
                } else if (error instanceof Exception e) {
                    node.failed(e, false, node.epoch(), now);
                }
                conn.close();
            });
            conn.send(ready);
        }
    }

    private void end(Throwable cause) {
        closed = true;
        List<Call> calls = new ArrayList<>(waiting);
        List.copyOf(conns).forEach(conn -> calls.addAll(conn.close()));
        calls.forEach(call -> call.fail(new ClosedException(cause)));
        helpers.shutdownNow();
        try {
            selector.close();
        } catch (IOException e) {
            // Nothing uses it any more.
        }
        ended = true;
        while (!inbox.isEmpty()) {
            runTasks();
        }
    }
}
