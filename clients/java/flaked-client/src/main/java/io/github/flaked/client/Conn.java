package io.github.flaked.client;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** One connection to a node: requests go out in the order of their calls, and replies come in this order. */
final class Conn {
    /** Room for a TLS record behind an unfinished line. */
    private static final int IN_SIZE = 32 * 1024;

    private final Dispatcher dispatcher;
    private final Node node;
    /** The calls whose replies have not come. */
    private final Deque<Call> pending = new ArrayDeque<>();

    private final ByteBuffer in = ByteBuffer.allocate(IN_SIZE);
    /** What has not been written yet, ready for get. */
    private ByteBuffer out = ByteBuffer.allocate(1024).limit(0);
    /** The host's addresses that were not tried yet. */
    private final Deque<SocketAddress> untried = new ArrayDeque<>();

    private SocketChannel channel;
    private SelectionKey key;
    private Tls tls; // null without TLS
    private boolean connected;
    private boolean closed;
    /** Bytes have come from the node. */
    private boolean heard;
    /** Requests were sent after a time without any, and nothing has come since: the node may have closed before. */
    private boolean resumed;

    Conn(Dispatcher dispatcher, Node node) {
        this.dispatcher = dispatcher;
        this.node = node;
        dispatcher.conns().add(this);
        String token = dispatcher.config().token();
        if (token != null) {
            Call auth = Call.pinned("AUTH " + token);
            auth.limit = Long.MAX_VALUE; // the requests behind it have limits
            auth.future.whenComplete((ok, error) -> {
                if (error instanceof Exception e) {
                    fail(e, false);
                }
            });
            add(auth);
        }
        dispatcher.post(this::open); // not here: a failure must find the first call
    }

    /** Adds a call's request to what is sent at the end of the dispatcher's turn. */
    void send(Call call) {
        resumed |= heard && pending.isEmpty();
        add(call);
        dispatcher.alarm(call.sentAt + call.limit);
        dispatcher.alarm(call.deadline);
        dispatcher.dirty(this);
    }

    private void add(Call call) {
        byte[] request = (call.request + "\n").getBytes(StandardCharsets.US_ASCII);
        if (out.capacity() - out.limit() < request.length) {
            out = ByteBuffer.allocate(Math.max(out.capacity(), 2 * (out.remaining() + request.length)))
                    .put(out)
                    .flip();
        }
        out.limit(out.limit() + request.length);
        out.put(out.limit() - request.length, request);
        pending.add(call);
    }

    private void open() {
        Address address = node.address();
        if (address.path() != null) {
            untried.add(UnixDomainSocketAddress.of(address.path()));
            connect();
            return;
        }
        if (node.lookup == null || node.lookup.isDone()) {
            node.lookup = dispatcher.lookup(address.host());
        }
        node.lookup.whenComplete((found, error) -> dispatcher.post(() -> resolved(found, error)));
    }

    private void resolved(InetAddress[] found, Throwable error) {
        if (error != null) {
            fail(new IOException(node.address().text() + ": the host name was not found. Check the address"), false);
            return;
        }
        for (int i = 0; i < found.length; i++) {
            InetAddress ip = found[(node.addressIndex + i) % found.length];
            untried.add(new InetSocketAddress(ip, node.address().port()));
        }
        connect();
    }

    /** Tries the next address of the host. */
    private void connect() {
        if (closed) {
            return;
        }
        SocketAddress address = untried.poll();
        try {
            boolean unix = address instanceof UnixDomainSocketAddress;
            channel = unix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
            channel.configureBlocking(false);
            if (!unix) {
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
                channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
            }
            boolean now = channel.connect(address);
            key = channel.register(dispatcher.selector(), SelectionKey.OP_CONNECT, this);
            if (now) {
                connected();
            }
        } catch (IOException e) {
            notConnected(e);
        }
    }

    private void notConnected(IOException e) {
        node.addressIndex = Math.floorMod(node.addressIndex + 1, 1024);
        if (untried.isEmpty()) {
            fail(inWords(e), false);
            return;
        }
        closeChannel();
        connect();
    }

    private void connected() throws IOException {
        connected = true;
        key.interestOps(SelectionKey.OP_READ);
        if (dispatcher.config().tls() != null && node.address().path() == null) {
            tls = new Tls(dispatcher, this, channel, node.address());
        }
        flush();
    }

    /** Does what the selector says is possible. */
    void ready() {
        try {
            if (!connected) {
                try {
                    channel.finishConnect();
                } catch (IOException e) {
                    notConnected(e);
                    return;
                }
                connected();
                return;
            }
            proceed();
        } catch (IOException e) {
            broken(e);
        }
    }

    /** Reads and writes as much as is possible now. */
    void proceed() throws IOException {
        if (closed) {
            return;
        }
        for (int n = -1; (n = tls == null ? channel.read(in) : tls.read(in)) != 0; ) {
            if (n < 0) {
                throw new IOException("the node closed the connection before it had answered");
            }
            heard = true;
            resumed = false;
            lines();
            if (closed) {
                return;
            }
        }
        flush();
    }

    /** Writes what the connection takes now. */
    void flush() {
        if (closed || !connected) {
            return;
        }
        try {
            boolean full;
            if (tls == null) {
                channel.write(out);
                full = out.hasRemaining();
            } else {
                full = tls.write(out);
            }
            if (!out.hasRemaining()) {
                out.clear().limit(0);
            } else if (out.position() > 0) {
                out.compact().flip();
            }
            int ops = full ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ;
            if (key.interestOps() != ops) {
                key.interestOps(ops);
            }
        } catch (IOException e) {
            broken(e);
        }
    }

    /** Handles the whole lines that have come. */
    private void lines() {
        byte[] bytes = in.array();
        int from = 0;
        for (int i = 0; i < in.position(); i++) {
            if (bytes[i] == '\n') {
                line(bytes, from, i);
                if (closed) {
                    return;
                }
                from = i + 1;
            }
        }
        if (in.position() - from > Reply.MAX_LINE) {
            notFromFlaked(bytes, from, from + Reply.MAX_LINE);
            return;
        }
        in.flip().position(from);
        in.compact();
    }

    private void line(byte[] bytes, int from, int to) {
        Call call = pending.peek();
        if (call == null) {
            notFromFlaked(bytes, from, to);
            return;
        }
        if (to > from && bytes[from] == '-') {
            String text = Reply.refusal(bytes, from, to);
            if (text == null || call.hasBegun()) {
                notFromFlaked(bytes, from, to);
                return;
            }
            pending.poll();
            dispatcher.refused(node, call, new RefusedException(node.address().text(), text));
        } else if (!call.accept(bytes, from, to)) {
            notFromFlaked(bytes, from, to);
        } else if (call.isComplete()) {
            pending.poll();
            dispatcher.answered(node, call);
        }
    }

    private void notFromFlaked(byte[] bytes, int from, int to) {
        String line = Reply.printable(bytes, from, Math.min(to, from + 60));
        fail(
                new IOException(node.address().text() + " is not a flaked node, it answered \"" + line
                        + "\". Check the address, and whether the node asks for TLS"),
                false);
    }

    /** Ends calls whose deadline has passed, and the connection if the node was silent for too long. */
    void tick(long now) {
        Call late = null;
        for (Call call : pending) {
            if (call.limit == Long.MAX_VALUE) {
                continue;
            }
            if (call.deadline - now > 0) {
                dispatcher.alarm(call.deadline);
            } else if (!call.isDone()) {
                call.expire();
            }
            if (call.sentAt + call.limit - now <= 0) {
                late = late == null ? call : late;
            } else {
                dispatcher.alarm(call.sentAt + call.limit);
            }
        }
        if (late != null) {
            long ms = TimeUnit.NANOSECONDS.toMillis(late.limit);
            boolean hurried = late.limit < dispatcher.config().nodeTimeout();
            fail(new IOException(node.address().text() + " has not answered for " + ms + " ms"), hurried);
        }
    }

    /** Handles the end of the connection. What an idle connection has lost is sent to the node once more. */
    private void broken(IOException e) {
        if (resumed) {
            close().forEach(call -> dispatcher.ask(node, call));
        } else {
            fail(inWords(e), false);
        }
    }

    /** Closes the connection. Its calls go to other nodes. If there are any, the node has failed. */
    void fail(Exception e, boolean hurried) {
        if (closed) {
            return;
        }
        if (!connected) {
            node.addressIndex = Math.floorMod(node.addressIndex + 1, 1024); // a look-up may give several addresses
        }
        List<Call> calls = close();
        if (calls.isEmpty()) {
            return;
        }
        Call newest = calls.get(calls.size() - 1);
        if (!newest.pinned) {
            node.failed(e, hurried, newest.epoch, dispatcher.now());
        }
        for (Call call : calls) {
            if (call.pinned) {
                call.fail(e);
            } else {
                call.last = e;
                dispatcher.route(call);
            }
        }
    }

    /** Closes the connection, and returns the calls that were not answered. */
    List<Call> close() {
        closed = true;
        closeChannel();
        dispatcher.conns().remove(this);
        node.forget(this);
        List<Call> calls = new ArrayList<>(pending);
        pending.clear();
        return calls;
    }

    private void closeChannel() {
        try {
            if (channel != null) {
                channel.close();
            }
        } catch (IOException e) {
            // The connection is of no use any more, however it ends.
        }
    }

    private IOException inWords(IOException e) {
        String text = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        String advice = connected ? "" : ". Check that the node runs and listens there";
        return new IOException(node.address().text() + ": " + text + advice, e);
    }
}
