package io.github.flaked.client;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** The bytes between the client and a node, over TCP, TLS or a unix socket. All but close may block until close. */
final class Wire {
    /** What close must close. It is TCP even with TLS, which would wait for a write to end. */
    private volatile Closeable open = () -> {};

    private volatile boolean closed;
    private SocketChannel unix; // null for TCP
    private OutputStream out;
    /** What comes from the node, once connect has returned. */
    InputStream in;

    /** Connects, within a time if it is TCP. A host may have several addresses: each failure leads to the next one. */
    void connect(Address address, int failures, Pool.Options options) throws IOException {
        Socket socket = new Socket();
        unix = address.path() == null ? null : SocketChannel.open(StandardProtocolFamily.UNIX);
        open = unix == null ? socket : unix;
        if (closed) { // before there was something to close
            close();
        }
        if (unix != null) {
            unix.connect(UnixDomainSocketAddress.of(address.path()));
            in = Channels.newInputStream(unix);
            return;
        }
        int ms = (int) (options.nodeTimeout() / Check.MS);
        InetAddress[] all = InetAddress.getAllByName(address.host());
        socket.connect(new InetSocketAddress(all[failures % all.length], address.port()), ms);
        socket.setTcpNoDelay(true);
        socket.setKeepAlive(true);
        if (options.tls() != null) {
            socket = options.tls().getSocketFactory().createSocket(socket, address.host(), address.port(), true);
            SSLParameters parameters = options.tls().getDefaultSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS"); // verifies the host name
            ((SSLSocket) socket).setSSLParameters(parameters);
            socket.setSoTimeout(ms);
            ((SSLSocket) socket).startHandshake();
            socket.setSoTimeout(0);
        }
        in = socket.getInputStream();
        out = socket.getOutputStream();
    }

    void write(byte[] bytes) throws IOException {
        if (unix == null) {
            out.write(bytes);
            return;
        }
        // Not by a stream of Channels: it would wait for the one that reads.
        for (ByteBuffer rest = ByteBuffer.wrap(bytes); rest.hasRemaining(); ) {
            unix.write(rest);
        }
    }

    void close() {
        closed = true;
        try {
            open.close();
        } catch (IOException e) {
            // The socket is of no use any more, however it ends.
        }
    }
}
