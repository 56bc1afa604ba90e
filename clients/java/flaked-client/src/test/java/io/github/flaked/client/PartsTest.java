package io.github.flaked.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PartsTest {
    private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(1);

    @Test
    void numbersAreExactUpTo63Bits() {
        assertEquals(0, Query.number("0"));
        assertEquals(Long.MAX_VALUE, Query.number("9223372036854775807"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "01", "+1", "1.0", "1e3", "9223372036854775808", "9999999999999999999", "12a", "1 ", "-1"})
    void whatIsNoNumberIsRefused(String text) {
        assertEquals(-1, Query.number(text));
    }

    @Test
    void aLineHasJustTheNumbersThatTheQueryWants() {
        long[] values = new long[2];
        assertTrue(new Query("RANGE order 4", 1, 2, true).accept("17 20", values, 0));
        assertArrayEquals(new long[] {17, 20}, values);
        assertFalse(Query.values("NEXT order", 1).accept("17 20", values, 0));
        assertFalse(new Query("RANGE order 4", 1, 2, true).accept("17", values, 0));
        assertFalse(Query.values("GET", 1).accept("0", values, 0));
    }

    @Test
    void aRefusalHasItsFields() {
        RefusedException e = new RefusedException("a:1", "NOTREADY reason=ceiling retry_after_ms=250 wait");
        assertEquals("NOTREADY", e.code());
        assertEquals("ceiling", e.reason());
        assertEquals(Duration.ofMillis(250), e.retryAfter());
        assertEquals(Duration.ZERO, new RefusedException("a:1", "CLOCK retry_after_ms=-5").retryAfter());
    }

    @ParameterizedTest
    @ValueSource(strings = {"NOAUTH Send AUTH token", "WRONGPASS wrong token"})
    void aRefusalOfTheTokenSaysWhatToSet(String reply) {
        RefusedException e = new RefusedException("a:1", reply);
        assertTrue(e.getMessage().startsWith("a:1 answered -" + reply + ". Set the token"), e.getMessage());
        assertTrue(e.getMessage().contains("flaked.token"), e.getMessage());
    }

    @ParameterizedTest
    @CsvSource({
        "127.0.0.1:7700, 127.0.0.1, 7700",
        "ids.example.com, ids.example.com, 7609",
        "[::1]:7700, ::1, 7700",
        "[::1], ::1, 7609",
        "fe80::1, fe80::1, 7609"
    })
    void addressesAreParsed(String text, String host, int port) {
        Address address = Address.parse(text);
        assertEquals(host, address.host());
        assertEquals(port, address.port());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", ":7609", "7609", "a:0", "a:65536", "a:x", "a:", "http://a", "a/b", "[::1", "[a]:1", "unix:x"
            })
    void wrongAddressesAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> Address.parse(text));
    }

    private static long pause(Node node, Exception e, double jitter) {
        node.settle(e, 0, jitter);
        return node.until;
    }

    @Test
    void aPauseDoublesUpToASecond() {
        Node node = new Node(Address.parse("a"));
        Exception e = new IOException("down");
        assertEquals(FIRST_PAUSE, pause(node, e, 1));
        assertEquals(2 * FIRST_PAUSE, pause(node, e, 1));
        for (int i = 0; i < 100; i++) {
            pause(node, e, 1);
        }
        assertEquals(LONGEST_PAUSE, pause(node, e, 1));
        assertEquals(LONGEST_PAUSE / 2, pause(node, e, 0.5));
        node.settle(null, 0, 1);
        assertEquals(FIRST_PAUSE, pause(node, e, 1));
    }

    @ParameterizedTest
    @CsvSource({
        "CLOCK retry_after_ms=700, 700",
        "CLOCK retry_after_ms=60000, 5000",
        "NOAUTH, 5000",
        "EXHAUSTED, 5000",
        "EXHAUSTED reason=exhausted, 20"
    })
    void aRefusalMayAskForALongerPauseOfFiveSecondsAtMost(String refusal, long ms) {
        Node node = new Node(Address.parse("a"));
        assertEquals(TimeUnit.MILLISECONDS.toNanos(ms), pause(node, new RefusedException("a", refusal), 1));
    }

    @Test
    void healthyNodesComeBeforeSlowOnesAndThoseBeforeFailedOnes() {
        Node healthy = new Node(Address.parse("a"));
        Node slow = new Node(Address.parse("b"));
        Node failed = new Node(Address.parse("c"));
        List<Node> nodes = List.of(failed, slow, healthy);
        slow.settle(new SocketTimeoutException("silent"), 0, 1);
        failed.settle(new IOException("down"), 0, 1);
        assertSame(healthy, Node.best(nodes, Set.of()));
        assertSame(slow, Node.best(nodes, Set.of(healthy)));
        assertSame(failed, Node.best(nodes, Set.of(healthy, slow)));
        assertNull(Node.best(nodes, Set.of(healthy, slow, failed)));
        assertTrue(slow.mayBeAsked(0));
        assertFalse(failed.mayBeAsked(0));
        assertTrue(failed.mayBeAsked(FIRST_PAUSE));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "42", "-a", "a b", "a\nGET"})
    void wrongNamesAndKeysAreRefused(String text) {
        try (FlakedClient client = FlakedClient.builder().build()) {
            Sequence sequence = client.sequence("order");
            assertThrows(IllegalArgumentException.class, () -> client.sequence(text));
            assertThrows(IllegalArgumentException.class, () -> sequence.next(text));
        }
    }

    /** A thread that ends a connection meets the reader between two lines. */
    @Test
    void aReplyIsNeverThatOfTheRequestBefore() throws Exception {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Address address = Address.parse("127.0.0.1:" + listener.getLocalPort());
            long second = TimeUnit.SECONDS.toNanos(1);
            Connection connection = new Connection(
                    new Node(address),
                    new Pool(List.of(address), new Pool.Options(null, null, second, new Identity(null))));
            Request[] requests = Stream.generate(() -> new Request(Query.values("NEXT x", 1), connection, second, null))
                    .limit(3)
                    .toArray(Request[]::new);
            // The reader stays in the first reply, and the end of the connection in the second request.
            requests[0].thenRun(() -> {
                Thread ender = new Thread(() -> connection.end(new IOException("ended")));
                ender.start();
                requests[1].exceptionally(e -> null).join();
            });
            requests[1].whenComplete(
                    (values, e) -> requests[2].exceptionally(late -> null).join());
            connection.send(requests);
            try (Socket socket = listener.accept()) {
                socket.getInputStream().readNBytes("WORKER\nNEXT x\nNEXT x\nNEXT x\n".length());
                socket.getOutputStream()
                        .write("cluster=a cluster_uuid=u\n1\n2\n3\n".getBytes(StandardCharsets.US_ASCII));
                assertThrows(ExecutionException.class, requests[2]::get);
            }
        }
    }
}
