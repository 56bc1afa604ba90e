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

/**
 * Real flaked nodes on a real ZooKeeper. They run the program that FLAKED_TEST_BINARY names, else bin/flaked of the
 * repository. As the Go tests, those with a cluster are skipped unless FLAKED_TEST_ZK is "require".
 */
public final class Cluster implements AutoCloseable {
    private static final String TOKEN = "0123456789abcdef0123456789abcdef";

    private final Path root;
    private final Path directory;
    private final String zooKeeper;
    private final List<Node> nodes = new ArrayList<>();

    private Cluster(Path root, Path directory) {
        this.root = root;
        this.directory = directory;
        String exports = run(List.of(zkDev(), "start", "--nodes", "1", "--port", "0", "--dir", zooKeeperDirectory()));
        zooKeeper = exports.replaceFirst("(?s).*export FLAKED_ZK='?([^'\\s]+).*", "$1");
    }

    /** Starts a ZooKeeper. */
    public static Cluster start() {
        Assumptions.assumeTrue(
                "require".equals(System.getenv("FLAKED_TEST_ZK")),
                "needs real nodes: run make test-clients, or set FLAKED_TEST_ZK=require");
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("scripts/zk-dev.sh"))) {
            root = Optional.ofNullable(root.getParent())
                    .orElseThrow(() -> new IllegalStateException("run the tests within flaked's repository"));
        }
        try {
            return new Cluster(root, Files.createTempDirectory("flaked-test"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts a node, and returns once it serves. */
    public Node node(String... flags) {
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
    public Node nodeWithToken() {
        return node("--token-file", write("token", TOKEN + "\n"));
    }

    /** Returns the token of {@link #nodeWithToken()}. */
    public String token() {
        return TOKEN;
    }

    /** Starts a node with TLS, whose certificate of its own is {@link #certificate()}. */
    public Node nodeWithTls() {
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
        return node("--tls-cert", certificate(), "--tls-key", path("key.pem"));
    }

    /** Returns the path of the PEM file that a client of {@link #nodeWithTls()} must trust. */
    public String certificate() {
        return path("certificate.pem");
    }

    /** Creates a named sequence. */
    public void createSequence(String name) {
        run(List.of(binary(), "seq", "create", "--zk", zooKeeper, name));
    }

    @Override
    public void close() {
        nodes.forEach(Node::kill);
        run(List.of(zkDev(), "stop", "--wipe", "--dir", zooKeeperDirectory()));
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
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
