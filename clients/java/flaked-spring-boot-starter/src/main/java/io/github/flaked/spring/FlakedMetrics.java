package io.github.flaked.spring;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.Stats;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;

/** Counts a client's calls, and shows which nodes are healthy. The tag client is the name of its bean. */
final class FlakedMetrics implements MeterBinder {
    private final String name;
    private final FlakedClient client;

    FlakedMetrics(String name, FlakedClient client) {
        this.name = name;
        this.client = client;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        if (client.stats() == null) {
            return; // a mock of a test
        }
        FunctionCounter.builder("flaked.client.calls", client, c -> c.stats().calls())
                .description("calls that have begun")
                .tag("client", name)
                .register(registry);
        FunctionCounter.builder("flaked.client.failures", client, c -> c.stats().failures())
                .description("calls that ended with an exception")
                .tag("client", name)
                .register(registry);
        for (int i = 0; i < client.stats().nodes().size(); i++) {
            bindNode(registry, i);
        }
    }

    private void bindNode(MeterRegistry registry, int index) {
        String address = node(client, index).address();
        Gauge.builder("flaked.client.node.healthy", client, c -> node(c, index).healthy() ? 1 : 0)
                .description("1 if the node answered the last time it was asked, or was never asked")
                .tag("address", address)
                .tag("client", name)
                .register(registry);
        FunctionCounter.builder("flaked.client.node.failures", client, c -> node(c, index)
                        .failures())
                .description("failures of the node, after which its calls went to another one")
                .tag("address", address)
                .tag("client", name)
                .register(registry);
    }

    private static Stats.Node node(FlakedClient client, int index) {
        return client.stats().nodes().get(index);
    }
}
