package io.github.flaked.spring;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.FlakedException;
import io.github.flaked.client.Stats;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * The health of a client: it is well if it gets an ID within a second. Nobody uses that ID.
 *
 * @param failure why it got none, or null
 * @param nodes the state of each node, by its address
 */
record ClientHealth(FlakedException failure, Map<String, String> nodes) {
    private static final Log LOG = LogFactory.getLog(ClientHealth.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    static ClientHealth of(FlakedClient client) {
        FlakedException failure = null;
        try {
            client.withTimeout(TIMEOUT).next();
        } catch (FlakedException e) {
            // Spring's AbstractHealthIndicator would log a hundred lines of stack trace at each probe.
            LOG.warn("the health check got no ID: " + e.getMessage());
            failure = e;
        }
        Map<String, String> nodes = new LinkedHashMap<>();
        for (Stats.Node node : client.stats().nodes()) {
            nodes.put(node.address(), node.healthy() ? "healthy" : node.lastError());
        }
        return new ClientHealth(failure, nodes);
    }
}
