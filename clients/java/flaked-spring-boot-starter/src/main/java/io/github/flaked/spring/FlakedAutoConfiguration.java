package io.github.flaked.spring;

import io.github.flaked.client.FlakedClient;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.CompositeHealthContributor;
import org.springframework.boot.actuate.health.HealthContributor;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.ssl.SslBundles;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Makes a {@link FlakedClient} from flaked.*, unless the program has one, and reports its health and metrics. */
@AutoConfiguration(after = SslAutoConfiguration.class)
@EnableConfigurationProperties(FlakedProperties.class)
public class FlakedAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    FlakedClient flakedClient(FlakedProperties properties, ObjectProvider<SslBundles> bundles) {
        FlakedClient.Builder builder = FlakedClient.builder();
        set("addresses", () -> builder.addresses(properties.addresses()));
        set("cluster", () -> builder.cluster(properties.cluster()));
        set("token", () -> builder.token(properties.token()));
        set("timeout", () -> builder.timeout(properties.timeout()));
        set("node-timeout", () -> builder.nodeTimeout(properties.nodeTimeout()));
        set("prefetch", () -> builder.prefetch(properties.prefetch()));
        set("max-age", () -> builder.maxAge(properties.maxAge()));
        if (properties.sslBundle() != null) {
            set(
                    "ssl-bundle",
                    () -> builder.tls(bundles.getObject()
                            .getBundle(properties.sslBundle())
                            .createSslContext()));
        }
        return builder.build();
    }

    private static void set(String property, Runnable setter) {
        try {
            setter.run();
        } catch (RuntimeException e) {
            throw new InvalidPropertyException("flaked." + property, e);
        }
    }

    // Spring Boot 3 has these classes, and Boot 4 those below.
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HealthContributor.class, ConditionalOnEnabledHealthIndicator.class})
    static class Health {
        @Bean
        @ConditionalOnEnabledHealthIndicator("flaked")
        @ConditionalOnMissingBean(name = "flakedHealthIndicator")
        HealthContributor flakedHealthIndicator(Map<String, FlakedClient> clients) {
            return clients.size() == 1
                    ? indicator(clients.values().iterator().next())
                    : CompositeHealthContributor.fromMap(clients, Health::indicator);
        }

        private static HealthIndicator indicator(FlakedClient client) {
            return () -> {
                ClientHealth health = ClientHealth.of(client);
                var builder = health.failure() == null
                        ? org.springframework.boot.actuate.health.Health.up()
                        : new org.springframework.boot.actuate.health.Health.Builder()
                                .down(health.failure()); // Health.down takes an Exception before 3.5
                return builder.withDetails(health.nodes()).build();
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({
        org.springframework.boot.health.contributor.HealthContributor.class,
        org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator.class
    })
    static class HealthOfBoot4 {
        @Bean
        @org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator("flaked")
        @ConditionalOnMissingBean(name = "flakedHealthIndicator")
        org.springframework.boot.health.contributor.HealthContributor flakedHealthIndicator(
                Map<String, FlakedClient> clients) {
            return clients.size() == 1
                    ? indicator(clients.values().iterator().next())
                    : org.springframework.boot.health.contributor.CompositeHealthContributor.fromMap(
                            clients, HealthOfBoot4::indicator);
        }

        private static org.springframework.boot.health.contributor.HealthIndicator indicator(FlakedClient client) {
            return () -> {
                ClientHealth health = ClientHealth.of(client);
                var builder = health.failure() == null
                        ? org.springframework.boot.health.contributor.Health.up()
                        : org.springframework.boot.health.contributor.Health.down(health.failure());
                return builder.withDetails(health.nodes()).build();
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterBinder.class)
    static class Metrics {
        @Bean
        @ConditionalOnMissingBean(name = "flakedMetrics")
        MeterBinder flakedMetrics(Map<String, FlakedClient> clients) {
            return registry -> clients.forEach((name, client) -> new FlakedMetrics(name, client).bindTo(registry));
        }
    }
}
