package org.apache.zookeeper.common;

import java.io.File;
import java.util.Date;

/**
 * Replaces ZooKeeper's class of this name, by which a server stamps transactions. The wall clock is
 * true time plus the time by which the modification time of a file is after 2001-09-09T01:46:40Z.
 * After a change: javac --release 8 Time.java
 */
public class Time {
    private static final File OFFSET = new File(System.getProperty("flaked.clock"));
    private static final long ZERO = 1_000_000_000_000L;

    public static long currentElapsedTime() {
        return System.nanoTime() / 1_000_000;
    }

    public static long currentWallTime() {
        return System.currentTimeMillis() + OFFSET.lastModified() - ZERO;
    }

    public static Date elapsedTimeToDate(long elapsedTime) {
        return new Date(currentWallTime() + elapsedTime - currentElapsedTime());
    }
}
