package io.github.flaked.client;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One request, which may go to several nodes in turn. The dispatcher's thread owns all fields that can change, but the
 * future, last and node.
 */
final class Call {
    final String request;
    final boolean ofSequence;
    final long deadline;
    final CompletableFuture<long[]> future = new CompletableFuture<>();

    /** The error of the node that was asked before, null at first. */
    volatile Exception last;
    /** The node that was asked last, null at first. */
    volatile Node node;

    /** The nodes that have refused the call for a reason that is about the sequence. */
    List<Node> refused = List.of();
    /** When the request was given to the node, how long the node may take, and the node's epoch at that time. */
    long sentAt;

    long limit;
    int epoch;
    /** When a call that waits for a node must be routed again. */
    long resumeAt;

    /** Belongs to one connection: AUTH and READY. It is never sent to another node. */
    final boolean pinned;

    private final int perLine;
    private final long[] values;
    private int got;

    Call(String request, int lines, int perLine, boolean ofSequence, long timeout) {
        this(request, new long[lines * perLine], perLine, ofSequence, timeout, false);
    }

    private Call(String request, long[] values, int perLine, boolean ofSequence, long timeout, boolean pinned) {
        this.request = request;
        this.values = values;
        this.perLine = perLine;
        this.ofSequence = ofSequence;
        deadline = System.nanoTime() + timeout;
        this.pinned = pinned;
    }

    /** Returns a call that is answered with OK. */
    static Call pinned(String request) {
        return new Call(request, new long[0], 0, false, TimeUnit.DAYS.toNanos(1), true); // its limit ends it
    }

    /** Prepares the call for the node that is asked next. */
    void ask(Node node, long now, long limit) {
        this.node = node;
        sentAt = now;
        this.limit = limit;
        epoch = node.epoch();
        got = 0; // values of a reply that was cut short are lost
    }

    /** Takes a line of the reply, and reports whether it can be one. */
    boolean accept(byte[] line, int from, int to) {
        if (pinned) {
            return Reply.isOk(line, from, to);
        }
        boolean good = Reply.numbers(line, from, to, values, got, perLine, ofSequence ? 0 : 1);
        got += perLine;
        return good && (perLine == 1 || values[0] <= values[1]);
    }

    boolean hasBegun() {
        return got > 0;
    }

    boolean isComplete() {
        return got == values.length;
    }

    void complete() {
        future.complete(values);
    }

    void fail(Exception e) {
        future.completeExceptionally(e);
    }

    boolean isDone() {
        return future.isDone();
    }

    void refusedBy(Node node) {
        List<Node> all = new ArrayList<>(refused);
        all.add(node);
        refused = all;
    }

    /** Fails the call because its time is up. */
    void expire() {
        Node asked = node;
        Exception error = last;
        String silent =
                asked == null || error != null ? "" : ": " + asked.address().text() + " is silent";
        fail(new UnavailableException("no flaked node answered in time" + silent, error));
    }

    /** Returns a future of a single value, whose dependents run in the common pool: they may block. */
    CompletableFuture<Long> inPool() {
        CompletableFuture<Long> result = new CompletableFuture<>();
        future.whenCompleteAsync((values, error) -> {
            if (error == null) {
                result.complete(values[0]);
            } else {
                result.completeExceptionally(error);
            }
        });
        result.whenComplete((value, error) -> future.cancel(false));
        return result;
    }

    /** Waits for the values. */
    long[] await() {
        try {
            return future.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            expire();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            FlakedException interrupted = new FlakedException("the thread was interrupted while it waited", e);
            future.completeExceptionally(interrupted);
            throw interrupted;
        } catch (ExecutionException e) {
            throw inThisThread(e);
        }
        try { // the reply may have come while the time ran out
            return future.get();
        } catch (InterruptedException | ExecutionException e) {
            throw inThisThread(e);
        }
    }

    private static FlakedException inThisThread(Exception e) {
        if (e.getCause() instanceof FlakedException failure) {
            failure.fillInStackTrace(); // the dispatcher's would tell the reader nothing
            return failure;
        }
        return new FlakedException("the call was ended", e);
    }
}
