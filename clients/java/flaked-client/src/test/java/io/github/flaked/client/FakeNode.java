package io.github.flaked.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** A node that counts from 1, or one that reads and never answers. */
final class FakeNode implements AutoCloseable {
    final CountDownLatch asked = new CountDownLatch(1);
    final AtomicLong connections = new AtomicLong();
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final AtomicLong last = new AtomicLong();
    private final boolean silent;

    FakeNode(boolean silent) throws IOException {
        this.silent = silent;
        daemon(() -> {
            while (true) {
                Socket socket = listener.accept();
                socket.setTcpNoDelay(true);
                connections.incrementAndGet();
                daemon(() -> serve(socket));
            }
        });
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    private interface Task {
        void run() throws IOException;
    }

    private static void daemon(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (IOException e) {
                // The test has ended.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void serve(Socket socket) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            if (line.startsWith("WORKER") && !silent) {
                socket.getOutputStream()
                        .write("worker=0 cluster=fake cluster_uuid=u1\n".getBytes(StandardCharsets.UTF_8));
                continue;
            }
            if (line.startsWith("WORKER")) {
                continue;
            }
            asked.countDown();
            if (silent) {
                continue;
            }
            String[] words = line.split(" ");
            boolean counted = words[words.length - 1].matches("[0-9]+");
            long n = counted ? Long.parseLong(words[words.length - 1]) : 1;
            StringBuilder reply = new StringBuilder();
            long first = last.getAndAdd(n) + 1;
            for (long i = 0; i < n; i++) {
                reply.append(first + i).append('\n');
            }
            String text = words[0].equals("RANGE") ? first + " " + (first + n - 1) + "\n" : reply.toString();
            socket.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
