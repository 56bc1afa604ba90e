import com.xfvape.uid.impl.CachedUidGenerator;
import java.util.concurrent.atomic.AtomicLong;

/** Takes IDs from a CachedUidGenerator. Prints IDs a second, failed calls, and the age of the last ID in seconds. */
public class Uid {
    public static void main(String[] args) throws Exception {
        CachedUidGenerator generator = new CachedUidGenerator();
        generator.setTimeBits(30); // its default, 28 bits of seconds since 2016-05-20, ended in 2024
        generator.setWorkerBits(20);
        generator.setSeqBits(13);
        generator.setWorkerIdAssigner(() -> 1);
        generator.afterPropertiesSet();
        AtomicLong got = new AtomicLong(), failed = new AtomicLong(), last = new AtomicLong();
        long began = System.nanoTime(), end = began + (long) (Double.parseDouble(args[1]) * 1e9);
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        for (int k = 0; k < threads.length; k++) {
            (threads[k] = new Thread(() -> {
                long mine = 0, empty = 0, id = 0;
                while ((mine + empty) % 256 != 0 || System.nanoTime() < end) {
                    try {
                        id = generator.getUID();
                        mine++;
                    } catch (RuntimeException e) { // the ring is empty
                        empty++;
                    }
                }
                got.addAndGet(mine);
                failed.addAndGet(empty);
                last.accumulateAndGet(id, Math::max);
            })).start();
        }
        for (Thread t : threads) t.join();
        long made = (last.get() >>> 33) + 1463673600; // its epoch is 2016-05-20 in China
        System.out.printf("%.0f %d %d%n", got.get() * 1e9 / (System.nanoTime() - began), failed.get(),
            System.currentTimeMillis() / 1000 - made);
        System.exit(0);
    }
}
