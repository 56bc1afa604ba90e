package io.github.flaked.shardingsphere;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.Sequence;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.function.Consumer;
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
        FlakedClient.Builder builder = FlakedClient.builder();
        apply(
                props,
                "addresses",
                text -> builder.addresses(
                        Arrays.stream(text.split(",")).map(String::strip).toList()));
        apply(props, "token", builder::token);
        apply(props, "timeout", text -> builder.timeout(time(text)));
        apply(props, "node-timeout", text -> builder.nodeTimeout(time(text)));
        apply(props, "prefetch", text -> builder.prefetch(Integer.parseInt(text)));
        apply(props, "max-age", text -> builder.maxAge(time(text)));
        FlakedClient made = builder.build();
        client = made;
        values = n -> n == 1 ? new long[] {made.next()} : made.next(n);
        apply(props, "sequence", name -> {
            Sequence sequence = made.sequence(name);
            values = n -> n == 1 ? new long[] {sequence.next()} : sequence.next(n);
        });
        // ShardingSphere drops a generator without notice when a rule changes.
        CLEANER.register(this, made::close);
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

    private void apply(Properties props, String name, Consumer<String> setter) {
        String value = props.getProperty(name);
        if (value == null) {
            return;
        }
        try {
            setter.accept(value.strip());
        } catch (RuntimeException e) {
            throw new AlgorithmInitializationException(this, "the property %s is wrong: %s", name, e.getMessage());
        }
    }

    private static Duration time(String text) {
        if (text.endsWith("ms")) {
            return Duration.ofMillis(Long.parseLong(text.substring(0, text.length() - 2)));
        }
        return Duration.parse("PT" + text);
    }
}
