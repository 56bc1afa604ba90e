package io.github.flaked.spring;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.Stats;
import java.time.Duration;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/** Is up if the client gets an ID within a second. Nobody uses that ID. */
final class FlakedHealthIndicator extends AbstractHealthIndicator {
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    private final FlakedClient client;

    FlakedHealthIndicator(FlakedClient client) {
        super("no flaked node gave an ID");
        this.client = client;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        try {
            client.next(TIMEOUT);
            builder.up();
        } finally {
            for (Stats.Node node : client.stats().nodes()) {
                builder.withDetail(node.address(), node.healthy() ? "healthy" : node.lastError());
            }
        }
    }
}
