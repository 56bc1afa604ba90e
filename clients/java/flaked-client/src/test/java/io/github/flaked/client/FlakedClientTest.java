package io.github.flaked.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class FlakedClientTest {
    @Test
    void aThousandThreadsGetDifferentIds() throws Exception {
        getWith(Thread::new);
    }

    @Test
    void aThousandVirtualThreadsGetDifferentIds() throws Exception {
        // Java 17 has none. A nightly run has a newer Java: scripts/test-clients.sh.
        assumeTrue(Runtime.version().feature() >= 21);
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Method unstarted = Class.forName("java.lang.Thread$Builder").getMethod("unstarted", Runnable.class);
        getWith(task -> {
            try {
                return (Thread) unstarted.invoke(builder, task);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        });
    }

    private static void getWith(ThreadFactory factory) throws Exception {
        try (FakeNode node = new FakeNode(false);
                FlakedClient client = FlakedClient.builder()
                        .addresses(node.address())
                        .prefetch(100)
                        .build()) {
            Set<Long> ids = ConcurrentHashMap.newKeySet();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                threads.add(factory.newThread(() -> {
                    for (int k = 0; k < 20; k++) {
                        ids.add(client.next());
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(20_000, ids.size());
            assertEquals(20_000, client.stats().calls());
            assertEquals(0, client.stats().failures());
        }
    }

    @Test
    void anInterruptEndsACallAndLeavesTheConnectionAlone() throws Exception {
        try (FakeNode node = new FakeNode(true);
                FlakedClient client = FlakedClient.builder()
                        .addresses(node.address())
                        .nodeTimeout(Duration.ofMinutes(1))
                        .build()) {
            CompletableFuture<Throwable> thrown = new CompletableFuture<>();
            Thread caller = new Thread(() -> {
                Throwable e = assertThrows(FlakedException.class, client::next);
                thrown.complete(Thread.currentThread().isInterrupted() ? e : null);
            });
            caller.start();
            node.asked.await();
            caller.interrupt();
            assertInstanceOf(InterruptedException.class, thrown.get().getCause());
            assertTrue(client.stats().nodes().get(0).healthy());
        }
    }

    @Test
    void anUnknownHostIsNamedSo() {
        try (FlakedClient client = FlakedClient.builder()
                .addresses("no-such-host.invalid")
                .timeout(Duration.ofSeconds(5))
                .build()) {
            Throwable e = assertThrows(UnavailableException.class, client::next);
            assertTrue(e.getMessage().contains("unknown host no-such-host.invalid"), e.getMessage());
        }
    }

    @Test
    void closeEndsCallsThatWait() throws Exception {
        FakeNode node = new FakeNode(true);
        FlakedClient client = FlakedClient.builder().addresses(node.address()).build();
        CompletableFuture<Long> waiting = CompletableFuture.supplyAsync(client::next);
        node.asked.await();
        client.close();
        client.close();
        Throwable e = assertThrows(ExecutionException.class, () -> waiting.get(10, TimeUnit.SECONDS));
        assertInstanceOf(ClosedException.class, e.getCause());
        assertThrows(ClosedException.class, client::next);
        node.close();
    }

    @Test
    void aSilentNodeHoldsUpACallForItsTimeoutOnly() throws Exception {
        try (FakeNode node = new FakeNode(true);
                FlakedClient client =
                        FlakedClient.builder().addresses(node.address()).build()) {
            UnavailableException e =
                    assertThrows(UnavailableException.class, () -> client.withTimeout(Duration.ofMillis(50))
                            .next());
            assertTrue(e.getMessage().contains(node.address()), e.getMessage());
            assertEquals(1, client.stats().failures());
        }
    }

    @Test
    void aNodeThatSendsBytesButNoReplyFails() throws Exception {
        try (ServerSocket slow = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                FakeNode good = new FakeNode(false);
                FlakedClient client = FlakedClient.builder()
                        .addresses("127.0.0.1:" + slow.getLocalPort(), good.address())
                        .nodeTimeout(Duration.ofMillis(300))
                        .build()) {
            CompletableFuture<Long> call = CompletableFuture.supplyAsync(client::next);
            try (Socket peer = slow.accept()) {
                peer.getInputStream().read();
                while (!call.isDone()) {
                    peer.getOutputStream().write('1');
                    Thread.sleep(30);
                }
            } catch (IOException e) {
                // The client has closed the connection.
            }
            assertEquals(1, call.get());
        }
    }

    private static FlakedClient patient(String address) {
        return FlakedClient.builder()
                .addresses(address)
                .nodeTimeout(Duration.ofMinutes(1))
                .build();
    }

    @Test
    void aNodeThatReadsNothingBlocksNoCaller(@TempDir Path directory) throws Exception {
        UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.resolve("node"));
        try (ServerSocketChannel node = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                FlakedClient client = patient("unix:" + address)) {
            node.bind(address);
            client.stock.pool.prefetch(Query.values("GET", 1), values -> {});
            node.accept().read(ByteBuffer.allocate(3)); // now the client is connected
            for (int i = 0; i < 1000; i++) {
                client.stock.pool.prefetch(Query.values("GET", 1), values -> {});
            }
        }
    }

    @Test
    void aWireThatIsClosedBeforeItConnectsStaysClosed(@TempDir Path directory) throws Exception {
        UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.resolve("node"));
        try (ServerSocketChannel node = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            node.bind(address);
            Wire wire = new Wire();
            wire.close();
            Pool.Options options = new Pool.Options(null, null, 1000 * Check.MS, new Identity(null));
            assertThrows(IOException.class, () -> wire.connect(Address.parse("unix:" + address), 0, options));
        }
    }

    @Test
    void theCodeOfTheReadmeWorks() throws Exception {
        String code;
        try (FakeNode first = new FakeNode(false)) {
            // begin
            try (FlakedClient flaked = FlakedClient.builder()
                    .addresses("unix:/run/flaked/flaked.sock", first.address())
                    .timeout(Duration.ofSeconds(2))
                    .build()) {
                long id = flaked.next();
                long[] ids = flaked.next(500);
                Sequence orders = flaked.sequence("order");
                long number = orders.next();
                Range block = orders.range(100);
                System.out.println(id + " " + ids.length + " " + number + " " + block.first() + " " + block.last());
            }
            // end
            code = Files.readString(Path.of("src/test/java/io/github/flaked/client/FlakedClientTest.java"));
        }
        String begin = "// " + "begin";
        String tested = code.substring(code.indexOf(begin) + begin.length(), code.indexOf("// " + "end"));
        String readme = Files.readString(Path.of("../README.md"));
        String shown =
                readme.substring(readme.indexOf("```java") + 7, readme.indexOf("```\n", readme.indexOf("```java") + 7));
        assertFalse(shown.isBlank());
        assertEquals(
                tested.replaceAll("\\s+", ""),
                shown.replace("\"ids-1.example.com:7609\"", "first.address()").replaceAll("\\s+", ""));
    }
}
