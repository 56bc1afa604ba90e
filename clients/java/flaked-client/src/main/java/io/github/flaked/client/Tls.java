package io.github.flaked.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;

/** TLS on a channel that does not block. */
final class Tls {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final Dispatcher dispatcher;
    private final Conn conn;
    private final SocketChannel channel;
    private final SSLEngine engine;
    private final ByteBuffer netIn;
    private final ByteBuffer netOut;
    /** A computation of the handshake is under way in another thread. The engine must not be used meanwhile. */
    private boolean busy;

    Tls(Dispatcher dispatcher, Conn conn, SocketChannel channel, Address address) throws SSLException {
        this.dispatcher = dispatcher;
        this.conn = conn;
        this.channel = channel;
        engine = dispatcher.config().tls().createSSLEngine(address.host(), address.port());
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // verifies the host name
        engine.setSSLParameters(parameters);
        netIn = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
        netOut = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
        engine.beginHandshake();
    }

    /** Reads into in, which has room for a record. Returns 0 if nothing has come yet, and -1 at the end. */
    int read(ByteBuffer in) throws IOException {
        if (busy) {
            return 0;
        }
        boolean end = channel.read(netIn) < 0;
        int before = in.position();
        netIn.flip();
        try {
            while (!busy && unwrap(in)) {}
        } finally {
            netIn.compact();
        }
        if (in.position() > before) {
            return in.position() - before;
        }
        if (engine.isInboundDone()) {
            engine.wrap(NOTHING, netOut); // throws what was wrong with the certificate, if that is why
        }
        return end || engine.isInboundDone() ? -1 : 0;
    }

    /** Does one step of reading, and reports whether there may be another. */
    private boolean unwrap(ByteBuffer in) throws IOException {
        HandshakeStatus status = engine.getHandshakeStatus();
        if (status == HandshakeStatus.NEED_TASK) {
            runTasks();
            return false;
        }
        if (status == HandshakeStatus.NEED_WRAP) {
            write(NOTHING);
            return engine.getHandshakeStatus() != HandshakeStatus.NEED_WRAP;
        }
        SSLEngineResult result = engine.unwrap(netIn, in);
        boolean moved = result.bytesConsumed() > 0 || result.bytesProduced() > 0;
        return result.getStatus() == SSLEngineResult.Status.OK && (moved || engine.getHandshakeStatus() != status);
    }

    /** Writes from out what is possible now, and reports whether the channel is full. */
    boolean write(ByteBuffer out) throws IOException {
        while (true) {
            netOut.flip();
            channel.write(netOut);
            netOut.compact();
            if (netOut.position() > 0) {
                return true;
            }
            if (busy) {
                return false;
            }
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> {
                    runTasks();
                    return false;
                }
                case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                    return false;
                }
                default -> {
                    if (!out.hasRemaining() && engine.getHandshakeStatus() != HandshakeStatus.NEED_WRAP) {
                        return false;
                    }
                }
            }
            if (engine.wrap(out, netOut).getStatus() == SSLEngineResult.Status.CLOSED) {
                throw new SSLException("TLS was closed by the node");
            }
        }
    }

    private void runTasks() {
        List<Runnable> tasks = new ArrayList<>();
        for (Runnable task; (task = engine.getDelegatedTask()) != null; ) {
            tasks.add(task);
        }
        busy = true;
        dispatcher.help(() -> {
            tasks.forEach(Runnable::run);
            dispatcher.post(() -> {
                busy = false;
                conn.ready();
            });
        });
    }
}
