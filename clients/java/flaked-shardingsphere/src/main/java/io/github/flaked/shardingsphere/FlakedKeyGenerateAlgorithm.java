package io.github.flaked.shardingsphere;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.Sequence;
import io.github.flaked.client.TextSettings;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.function.IntFunction;
import org.apache.shardingsphere.infra.algorithm.core.context.AlgorithmSQLContext;
import org.apache.shardingsphere.infra.algorithm.core.exception.AlgorithmInitializationException;
import org.apache.shardingsphere.infra.algorithm.keygen.core.KeyGenerateAlgorithm;

/**
 * The key generator of type FLAKED. Its props are {@code addresses} (separated by commas), {@code token},
 * {@code timeout}, {@code node-timeout}, {@code prefetch}, {@code max-age}, and {@code sequence} for the values of a
 * named sequence. A time is 500ms or 5s. A statement of many rows takes all its keys with one request, or from the
 * prefetched ones if it has one row.
 */
public final class FlakedKeyGenerateAlgorithm implements KeyGenerateAlgorithm, AutoCloseable {
    /** The most IDs or values of one request. */
    private static final int MAX_COUNT = 10_000;

    private static final Cleaner CLEANER = Cleaner.create();

    private FlakedClient client;
    private IntFunction<long[]> values;

    /** Makes a generator. ShardingSphere initializes it. */
    public FlakedKeyGenerateAlgorithm() {}

    @Override
    public void init(Properties props) {
        try {
            FlakedClient made = TextSettings.builder(props::getProperty).build();
            client = made;
            // ShardingSphere drops a generator without notice when a rule changes.
            CLEANER.register(this, made::close);
            String name = props.getProperty("sequence");
            if (name == null) {
                values = n -> n == 1 ? new long[] {made.next()} : made.next(n);
            } else {
                Sequence sequence = made.sequence(name.strip());
                values = n -> n == 1 ? new long[] {sequence.next()} : sequence.next(n);
            }
        } catch (IllegalArgumentException e) {
            throw new AlgorithmInitializationException(this, "wrong property: %s", e.getMessage());
        }
    }

    @Override
    public List<Long> generateKeys(AlgorithmSQLContext context, int count) {
        List<Long> keys = new ArrayList<>(count);
        while (keys.size() < count) {
            for (long key : values.apply(Math.min(count - keys.size(), MAX_COUNT))) {
                keys.add(key);
            }
        }
        return keys;
    }

    @Override
    public boolean isSupportAutoIncrement() {
        return true;
    }

    @Override
    public String getType() {
        return "FLAKED";
    }

    @Override
    public void close() {
        client.close();
    }
}
