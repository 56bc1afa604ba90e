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
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** The bytes between the client and a node, over TCP, TLS or a unix socket. All but close may block until close. */
final class Wire {
    /** What close must close. It is TCP even with TLS, which would wait for a write to end. */
    private volatile Closeable open;

    private SocketChannel unix; // null for TCP
    private OutputStream out;
    /** What comes from the node, once connect has returned. */
    InputStream in;

    /** Connects to the first address of the node's host that answers. They share the time. TLS may be null. */
    void connect(Address address, SSLContext tls, int ms) throws IOException {
        if (address.path() != null) {
            open = unix = SocketChannel.open(StandardProtocolFamily.UNIX);
            unix.connect(UnixDomainSocketAddress.of(address.path()));
            in = Channels.newInputStream(unix);
            return;
        }
        InetAddress[] all = InetAddress.getAllByName(address.host());
        Socket socket = new Socket();
        for (int i = 0; !socket.isConnected(); i++) {
            try {
                open = socket = new Socket(); // one that failed cannot be used again
                socket.connect(new InetSocketAddress(all[i], address.port()), Math.max(1, ms / all.length));
            } catch (IOException e) {
                if (i == all.length - 1) {
                    throw e;
                }
            }
        }
        socket.setTcpNoDelay(true);
        socket.setKeepAlive(true);
        socket = tls == null ? socket : handshake(socket, address, tls, ms);
        in = socket.getInputStream();
        out = socket.getOutputStream();
    }

    private static Socket handshake(Socket tcp, Address address, SSLContext tls, int ms) throws IOException {
        SSLSocket socket = (SSLSocket) tls.getSocketFactory().createSocket(tcp, address.host(), address.port(), true);
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // verifies the host name
        socket.setSSLParameters(parameters);
        socket.setSoTimeout(ms);
        socket.startHandshake();
        socket.setSoTimeout(0);
        return socket;
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
        try {
            if (open != null) {
                open.close();
            }
        } catch (IOException e) {
            // The socket is of no use any more, however it ends.
        }
    }
}
