package io.github.flaked.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A JUnit extension with real flaked nodes on a real ZooKeeper, for the tests of a class. The nodes run the program that
 * FLAKED_TEST_BINARY names, else bin/flaked of the repository. As the Go tests, those with a cluster are skipped unless
 * FLAKED_TEST_ZK is "require".
 */
public final class Cluster implements BeforeAllCallback, AfterAllCallback {
    private static final String TOKEN = "0123456789abcdef0123456789abcdef";

    private final List<Node> nodes = new ArrayList<>();
    private Path root;
    private Path directory;
    private String zooKeeper;

    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
        Assumptions.assumeTrue(
                "require".equals(System.getenv("FLAKED_TEST_ZK")),
                "needs real nodes: run make test-clients, or set FLAKED_TEST_ZK=require");
        root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("scripts/zk-dev.sh"))) {
            root = Optional.ofNullable(root.getParent())
                    .orElseThrow(() -> new IllegalStateException("run the tests within flaked's repository"));
        }
        directory = Files.createTempDirectory("flaked-test");
        String exports = run(List.of(zkDev(), "start", "--nodes", "1", "--port", "0", "--dir", zooKeeperDirectory()));
        zooKeeper = exports.replaceFirst("(?s).*export FLAKED_ZK='?([^'\\s]+).*", "$1");
        start();
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
        if (directory == null) {
            return; // the tests are skipped
        }
        nodes.forEach(Node::kill);
        run(List.of(zkDev(), "stop", "--wipe", "--dir", zooKeeperDirectory()));
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        }
    }

    /** Returns the node that serves all tests of the class. */
    public Node node() {
        return nodes.get(0);
    }

    /** Starts another node, and returns once it serves. */
    public Node start(String... flags) {
        String name = "n" + (nodes.size() + 1);
        List<String> command = new ArrayList<>(List.of(
                binary(), "serve", "--zk", zooKeeper, "--bootstrap", "--listen", "127.0.0.1:0", "--admin", "off"));
        command.addAll(List.of("--name", name, "--state-dir", path(name), "--log-format", "json"));
        command.addAll(List.of("--heartbeat", "200ms", "--confirm-time", "800ms"));
        command.addAll(List.of(flags));
        Node node = new Node(command);
        nodes.add(node);
        return node;
    }

    /** Starts a node that refuses clients which do not send {@link #token()}. */
    public Node startWithToken() {
        return start("--token-file", write("token", TOKEN + "\n"));
    }

    /** Returns the token of {@link #startWithToken()}. */
    public String token() {
        return TOKEN;
    }

    /** Starts a node with TLS, whose certificate of its own is {@link #certificate()}. */
    public Node startWithTls() {
        run(List.of(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-keyout",
                path("key.pem"),
                "-out",
                certificate(),
                "-days",
                "2",
                "-subj",
                "/CN=flaked",
                "-addext",
                "subjectAltName=IP:127.0.0.1"));
        return start("--tls-cert", certificate(), "--tls-key", path("key.pem"));
    }

    /** Returns the path of the PEM file that a client of {@link #startWithTls()} must trust. */
    public String certificate() {
        return path("certificate.pem");
    }

    /** Creates a named sequence. */
    public void createSequence(String name) {
        run(List.of(binary(), "seq", "create", "--zk", zooKeeper, name));
    }

    private String binary() {
        String named = System.getenv("FLAKED_TEST_BINARY");
        Path binary = named == null ? root.resolve("bin/flaked") : Path.of(named);
        if (!Files.isExecutable(binary)) {
            throw new IllegalStateException(binary + " is no program. Run make build, or set FLAKED_TEST_BINARY");
        }
        return binary.toString();
    }

    private String zkDev() {
        return root.resolve("scripts/zk-dev.sh").toString();
    }

    private String zooKeeperDirectory() {
        return path("zk");
    }

    private String path(String name) {
        return directory.resolve(name).toString();
    }

    private String write(String name, String text) {
        try {
            Path file = Files.writeString(directory.resolve(name), text);
            if (!file.toFile().setReadable(false, false) || !file.toFile().setReadable(true, true)) {
                throw new IOException("the permissions of " + file + " cannot be set");
            }
            return file.toString();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String run(List<String> command) {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            process.getOutputStream().close();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new IllegalStateException(String.join(" ", command) + " failed: " + output);
            }
            return output;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
