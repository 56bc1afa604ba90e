package io.github.flaked.client;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;

/** One connection. A thread of its own connects and reads. Those of the callers write, and watch for silence. */
final class Connection {
    private static final int MAX_LINE = 4096;
    private static final int WINDOW = 128; // of requests without replies: sockets have room, so no write blocks

    final Node node;
    private final Pool pool;
    private final boolean comparing;
    private final Wire wire = new Wire();
    private final Queue<Request> unsent = new ConcurrentLinkedQueue<>();
    private final Queue<Request> sent = new ConcurrentLinkedQueue<>(); // in the order of the replies
    private final ReentrantLock writer = new ReentrantLock(); // who has it writes for the others, too
    private volatile long heardAt; // when the last reply was complete, or the connection was made, 0 before that
    private volatile boolean idle; // all requests were answered then
    volatile Throwable ended; // why the connection has ended, null if it has not

    final Request who; // asks which cluster answers

    Connection(Node node, Pool pool) {
        this(node, pool, false);
    }

    /** Connects to a node. comparing: nothing is asked but which cluster answers. */
    Connection(Node node, Pool pool, boolean comparing) {
        this.node = node;
        this.pool = pool;
        this.comparing = comparing;
        if (pool.options.token() != null) {
            Request auth = new Request(
                    new Query("AUTH " + pool.options.token(), 1, 0, false), this, pool.options.nodeTimeout(), null);
            auth.whenComplete((ok, e) -> Optional.ofNullable(e).ifPresent(this::end));
            unsent.add(auth);
        }
        String question = pool.options.identity().request();
        who = new Request(new Query(question, 1, 0, false), this, pool.options.nodeTimeout(), null);
        unsent.add(who);
        Thread thread = new Thread(this::run, "flaked-client");
        thread.setDaemon(true);
        thread.start();
    }

    /** Sends requests, together with those of other threads. */
    void send(Request... requests) {
        unsent.addAll(List.of(requests));
        while (heardAt > 0 && !unsent.isEmpty() && sent.size() < WINDOW && writer.tryLock()) {
            try {
                if (!sent.isEmpty()) {
                    Thread.yield(); // other callers add their requests to the same write
                }
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                int room = WINDOW - sent.size();
                for (Request request; room > 0 && (request = unsent.poll()) != null; ) {
                    if (!request.isDone()) {
                        room--;
                        request.since = Pool.now();
                        sent.add(request);
                        bytes.writeBytes((request.query.text() + "\n").getBytes(StandardCharsets.US_ASCII));
                    }
                }
                wire.write(bytes.toByteArray());
            } catch (IOException e) {
                break; // the reader finds the end too, but first the replies that have come before
            } finally {
                writer.unlock();
            }
        }
        if (ended != null) {
            end(ended); // for requests that came too late for the first time
        }
    }

    /** Waits for the values of a request. */
    long[] await(Request request, long deadline) throws InterruptedException, ExecutionException, TimeoutException {
        try {
            while (true) {
                long until = Math.min(watch(request), deadline);
                try {
                    // A millisecond more: after a suspension of the process, a reply may only have to be read.
                    return request.get(until - Pool.now() + Check.MS, TimeUnit.NANOSECONDS);
                } catch (TimeoutException e) {
                    if (until == deadline) {
                        throw e;
                    }
                }
            }
        } finally {
            request.cancel(false); // if nobody waits, it need not be sent
        }
    }

    /** Returns when to watch again whether the node is silent for too long. If it is, the request has ended. */
    long watch(Request request) {
        Request first = sent.peek(); // perhaps nobody waits for it
        Request next = first != null && due(first) < due(request) ? first : request;
        if (Pool.now() >= due(next)) {
            boolean hurried = next.share < pool.options.nodeTimeout();
            String silent = node.address.text() + " did not answer in time";
            Exception e = hurried ? new SocketTimeoutException(silent) : new IOException(silent);
            next.completeExceptionally(e);
            // An attempt to connect goes on. Else calls with less time than that takes would never get a connection.
            if (heardAt > 0 || !hurried) {
                end(e);
            }
        }
        return due(next);
    }

    private long due(Request request) {
        return Math.max(request.since, heardAt) + request.share;
    }

    private void run() {
        try {
            wire.connect(node.address, node.failures, pool.options);
            heardAt = Pool.now();
            send();
            byte[] bytes = new byte[8 * MAX_LINE];
            String rest = "";
            for (int n; (n = wire.in.read(bytes)) >= 0; ) {
                idle = false;
                String[] lines = (rest + new String(bytes, 0, n, StandardCharsets.UTF_8)).split("\n", -1);
                for (int i = 0; i < lines.length - 1; i++) {
                    take(lines[i]);
                }
                rest = lines[lines.length - 1];
                if (rest.length() > MAX_LINE || !rest.isEmpty() && sent.isEmpty()) {
                    take("unasked " + rest); // no reply begins like that
                }
                idle = sent.isEmpty();
                send(); // what had no room
            }
            throw new IOException("the node closed the connection");
        } catch (IOException | RuntimeException e) {
            String advice = heardAt > 0 ? "" : ". Check the address, and that the node runs";
            boolean again = idle || e instanceof ClosedChannelException; // by an interrupt of a caller that writes
            String what = (e instanceof UnknownHostException ? ": unknown host " : ": ") + e.getMessage();
            end(again ? new EOFException() : new IOException(node.address.text() + what + advice, e));
        }
    }

    private void take(String line) throws IOException {
        Request request = sent.peek();
        if (ended == null && request == who) {
            meet(line);
            return;
        }
        // If it has ended, this may be the reply of a request before, which end has removed.
        if (ended != null || line.length() > MAX_LINE || request == null || !request.take(line)) {
            String shown = line.substring(0, Math.min(line.length(), 60)).replaceAll("\\p{Cntrl}", "?");
            throw new IOException("the answer \"" + shown + "\" is not that of a flaked node. Check the port and TLS");
        }
        if (request.missing == 0) {
            heardAt = Pool.now();
            sent.remove(request); // not poll: end may have removed it, and be at the next one
        }
    }

    /** Takes the reply that names the cluster. */
    private void meet(String line) {
        Identity identity = pool.options.identity();
        boolean decides = identity.isUnknown();
        Exception wrong = identity.check(node.address.text(), line, comparing);
        sent.remove(who);
        if (wrong != null) {
            who.completeExceptionally(wrong);
            end(wrong);
            return;
        }
        if (decides) {
            pool.compare(node);
        }
        heardAt = Pool.now();
        who.complete(new long[0]);
    }

    /** Closes the connection. Its requests, and those that come too late, fail. */
    void end(Throwable why) {
        ended = ended == null ? why : ended;
        wire.close();
        for (Queue<Request> queue : List.of(sent, unsent)) {
            for (Request request; (request = queue.poll()) != null; ) {
                request.completeExceptionally(ended);
            }
        }
    }
}
