package io.github.flaked.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PartsTest {
    private static long number(String text) {
        byte[] line = text.getBytes(StandardCharsets.UTF_8);
        return Reply.number(line, 0, line.length);
    }

    @Test
    void numbersAreExactUpTo63Bits() {
        assertEquals(0, number("0"));
        assertEquals(Long.MAX_VALUE, number("9223372036854775807"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "01", "+1", "1.0", "1e3", "9223372036854775808", "9999999999999999999", "12a", "1 ", "-1"})
    void whatIsNoNumberIsRefused(String text) {
        assertEquals(-1, number(text));
    }

    @Test
    void aLineHasJustTheNumbersThatTheCallWants() {
        byte[] line = "17 20".getBytes(StandardCharsets.UTF_8);
        long[] values = new long[2];
        assertTrue(Reply.numbers(line, 0, line.length, values, 0, 2, 0));
        assertArrayEquals(new long[] {17, 20}, values);
        assertFalse(Reply.numbers(line, 0, line.length, values, 0, 1, 0));
        assertFalse(Reply.numbers(line, 0, 2, values, 0, 2, 0));
    }

    @Test
    void anHttpServerAndNoiseAreNoRefusals() {
        for (String text : new String[] {"HTTP/1.1 400 Bad Request", "-", "-err x", "- ERR", ""}) {
            byte[] line = text.getBytes(StandardCharsets.UTF_8);
            assertNull(Reply.refusal(line, 0, line.length), text);
        }
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

    @Test
    void aPauseDoublesUpToASecond() {
        Exception e = new IOException("down");
        assertEquals(Node.PAUSE_FIRST, Node.pause(e, 1, 1));
        assertEquals(4 * Node.PAUSE_FIRST, Node.pause(e, 3, 1));
        assertEquals(Node.PAUSE_MOST, Node.pause(e, 1000, 1));
        assertEquals(Node.PAUSE_MOST / 2, Node.pause(e, 1000, 0.5));
    }

    @Test
    void aRefusalMayAskForALongerPauseOfFiveSecondsAtMost() {
        assertEquals(
                TimeUnit.MILLISECONDS.toNanos(700),
                Node.pause(new RefusedException("a", "CLOCK retry_after_ms=700"), 1, 1));
        assertEquals(Node.PAUSE_LONG, Node.pause(new RefusedException("a", "CLOCK retry_after_ms=60000"), 1, 1));
        assertEquals(Node.PAUSE_LONG, Node.pause(new RefusedException("a", "NOAUTH"), 1, 1));
        assertEquals(Node.PAUSE_LONG, Node.pause(new RefusedException("a", "EXHAUSTED"), 1, 1));
        assertEquals(Node.PAUSE_FIRST, Node.pause(new RefusedException("a", "EXHAUSTED reason=exhausted"), 1, 1));
    }

    @Test
    void healthyNodesComeBeforeSlowOnesAndThoseBeforeFailedOnes() {
        Node healthy = new Node(Address.parse("a"));
        Node slow = new Node(Address.parse("b"));
        Node failed = new Node(Address.parse("c"));
        slow.failed(new IOException("silent"), true, 0, 0);
        failed.failed(new IOException("down"), false, 0, 0);
        assertTrue(healthy.isBefore(slow) && slow.isBefore(failed));
        assertTrue(slow.mayBeAsked(0));
        assertFalse(failed.mayBeAsked(0));
        assertTrue(failed.mayBeAsked(Node.PAUSE_MOST));
    }

    @Test
    void errorsOfRequestsThatWereUnderWayChangeNothing() {
        Node node = new Node(Address.parse("a"));
        node.failed(new IOException("first"), false, 0, 0);
        node.failed(new IOException("second"), false, 0, 0);
        assertEquals(1, node.stats().failures());
        assertEquals("first", node.stats().lastError());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "42", "-a", "a b", "a\nGET"})
    void wrongNamesAndKeysAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> Check.name(text));
        assertThrows(IllegalArgumentException.class, () -> Check.key(text));
    }
}
