package io.github.flaked.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.crac.Core;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class StockTest {
    private static FlakedClient client(FakeNode node, int prefetch) {
        return FlakedClient.builder()
                .addresses(node.address())
                .prefetch(prefetch)
                .maxAge(Duration.ofMinutes(1))
                .build();
    }

    /** Takes until the stock has given one. */
    private static long fromStock(Stock stock) throws InterruptedException {
        long value;
        while ((value = stock.take()) < 0) {
            Thread.sleep(1);
        }
        return value;
    }

    @Test
    void valuesOfAClientRise() throws Exception {
        try (FakeNode node = new FakeNode(false);
                FlakedClient client = client(node, 10)) {
            Set<Long> all = ConcurrentHashMap.newKeySet();
            List<Long> falls = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                threads.add(new Thread(() -> {
                    long last = 0;
                    for (int k = 0; k < 500; k++) {
                        long value = client.next();
                        if (value < last) {
                            synchronized (falls) {
                                falls.add(value);
                            }
                        }
                        last = value;
                        all.add(value);
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(2000, all.size());
            assertEquals(List.of(), falls);
        }
    }

    @Test
    void aCopyOfTheProcessHasItsOwnValuesAndConnections() throws Exception {
        try (FakeNode node = new FakeNode(false);
                FlakedClient client = client(node, 100)) {
            client.next();
            long before = fromStock(client.stock);
            System.gc(); // CRaC refers to the client weakly
            Core.getGlobalContext().beforeCheckpoint(null);
            assertEquals(-1, client.stock.take());
            long between = client.next();
            assertTrue(between > 101, between + " is one of the stock before the checkpoint");
            fromStock(client.stock);
            Core.getGlobalContext().afterRestore(null);
            assertEquals(-1, client.stock.take());
            assertTrue(client.next() > between + 100);
            assertEquals(2, before);
            assertEquals(3, node.connections.get());
        }
    }

    @ParameterizedTest
    @CsvSource({"0, 3", "59000, 3", "-59000, 3", "61000, -1", "-61000, -1", "86400000, -1"})
    void theStockDiesIfTheClocksHaveMovedApart(long ms, long want) throws Exception {
        try (FakeNode node = new FakeNode(false);
                FlakedClient client = client(node, 1)) {
            AtomicLong moved = new AtomicLong();
            client.stock.wallClock = () -> System.currentTimeMillis() + moved.get();
            client.next();
            assertEquals(2, fromStock(client.stock));
            client.stock.fill();
            while (!client.stock.hasValues()) {
                Thread.sleep(1);
            }
            moved.set(ms);
            assertEquals(want, client.stock.take());
        }
    }
}
