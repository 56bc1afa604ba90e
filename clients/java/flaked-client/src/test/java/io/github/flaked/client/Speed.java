package io.github.flaked.client;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;

/**
 * Measures the calls a second of a client with a number of threads. In this module, while {@code flaked serve --dev} runs:
 * {@code java -cp target/classes:target/test-classes io.github.flaked.client.Speed 127.0.0.1:7609 64}.
 */
final class Speed {
    private static final int SECONDS = 5;

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[1]);
        LongAdder calls = new LongAdder();
        CountDownLatch begun = new CountDownLatch(threads);
        try (FlakedClient client = FlakedClient.builder().addresses(args[0]).build()) {
            for (int i = 0; i < threads; i++) {
                Thread caller = new Thread(() -> {
                    begun.countDown();
                    for (client.next(); ; calls.increment()) {
                        client.next();
                    }
                });
                caller.setUncaughtExceptionHandler((thread, closed) -> {});
                caller.setDaemon(true);
                caller.start();
            }
            begun.await();
            for (String what : new String[] {"first ", "then "}) { // the first seconds are those of the compiler
                long before = calls.sum();
                Thread.sleep(SECONDS * 1000L);
                System.out.println(what + (calls.sum() - before) / SECONDS + " calls a second");
            }
        }
    }
}
