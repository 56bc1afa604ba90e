package io.github.flaked.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A process of flaked serve. */
public final class Node {
    private static final Pattern LISTENING = Pattern.compile("\"@message\":\"listening\".*\"address\":\"([^\"]+)\"");

    private final Process process;
    private final String address;

    Node(List<String> command) {
        try {
            process = new ProcessBuilder(command).redirectErrorStream(true).start();
            address = awaitServing(process.inputReader(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String awaitServing(BufferedReader log) throws IOException {
        String address = null;
        StringBuilder all = new StringBuilder();
        for (String line = log.readLine(); line != null; line = log.readLine()) {
            all.append(line).append('\n');
            Matcher listening = LISTENING.matcher(line);
            if (listening.find()) {
                address = listening.group(1);
            }
            if (line.contains("\"@message\":\"serving\"")) {
                drain(log);
                return address;
            }
        }
        throw new IllegalStateException("the node ended before it served:\n" + all);
    }

    /** Reads on, because a full pipe would stop the node. */
    private static void drain(BufferedReader log) {
        Thread reader = new Thread(() -> log.lines().forEach(line -> {}), "flaked-log");
        reader.setUncaughtExceptionHandler((thread, closed) -> {});
        reader.setDaemon(true);
        reader.start();
    }

    /** Returns host:port. */
    public String address() {
        return address;
    }

    /** Ends the node as kill -9 does. */
    public void kill() {
        process.destroyForcibly();
        process.onExit().join();
    }

    /** Returns one of the numbers in the node's reply to STATS, such as requests_get_ok. */
    public long stat(String name) {
        String host = address.substring(0, address.lastIndexOf(':'));
        int port = Integer.parseInt(address.substring(host.length() + 1));
        try (Socket socket = new Socket(host, port)) {
            socket.getOutputStream().write("STATS\nQUIT\n".getBytes(StandardCharsets.US_ASCII));
            String stats = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return stats.lines()
                    .filter(line -> line.startsWith(name + " "))
                    .mapToLong(line -> Long.parseLong(line.substring(name.length() + 1)))
                    .findAny()
                    .orElseThrow(() -> new IllegalStateException("no " + name + " in:\n" + stats));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
