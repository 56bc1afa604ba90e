package io.github.flaked.spring;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.FlakedException;
import io.github.flaked.client.Stats;
import java.time.Duration;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;

/**
 * Is up if the client gets an ID within a second. Nobody uses that ID. Spring's AbstractHealthIndicator would log a
 * hundred lines of stack trace at each probe.
 */
final class FlakedHealthIndicator implements HealthIndicator {
    private static final Log LOG = LogFactory.getLog(FlakedHealthIndicator.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    private final FlakedClient client;

    FlakedHealthIndicator(FlakedClient client) {
        this.client = client;
    }

    @Override
    public Health health() {
        Health.Builder builder = Health.up();
        try {
            client.withTimeout(TIMEOUT).next();
        } catch (FlakedException e) {
            LOG.warn("the health check got no ID: " + e.getMessage());
            builder.down(e);
        }
        for (Stats.Node node : client.stats().nodes()) {
            builder.withDetail(node.address(), node.healthy() ? "healthy" : node.lastError());
        }
        return builder.build();
    }
}
