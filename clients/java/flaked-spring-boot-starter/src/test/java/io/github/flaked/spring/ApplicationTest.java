package io.github.flaked.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.FlakedException;
import io.github.flaked.client.UnavailableException;
import io.github.flaked.test.Cluster;
import io.github.flaked.test.Node;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.actuate.health.CompositeHealthContributor;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.actuate.health.Status;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;

/** A Spring Boot application with H2 that inserts rows, on real nodes (flaked serve with ZooKeeper). */
class ApplicationTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        @Bean
        MeterRegistry registry() {
            return new SimpleMeterRegistry();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnClient {
        static final FlakedClient CLIENT = FlakedClient.builder().build();

        @Bean
        FlakedClient ownClient() {
            return CLIENT;
        }
    }

    static ConfigurableApplicationContext run(Class<?> more, String... properties) {
        String[] arguments = Arrays.stream(properties).map(p -> "--" + p).toArray(String[]::new);
        return new SpringApplicationBuilder(Application.class, more)
                .web(WebApplicationType.NONE)
                .bannerMode(org.springframework.boot.Banner.Mode.OFF)
                .properties("logging.level.root=WARN", "spring.datasource.generate-unique-name=true")
                .run(arguments);
    }

    static ConfigurableApplicationContext run(String... properties) {
        return run(Application.class, properties);
    }

    private static void insert(ConfigurableApplicationContext context, int rows) {
        JdbcTemplate jdbc = context.getBean(JdbcTemplate.class);
        FlakedClient client = context.getBean(FlakedClient.class);
        jdbc.execute("create table if not exists article (id bigint primary key)");
        for (int i = 0; i < rows; i++) {
            jdbc.update("insert into article values (?)", client.next());
        }
    }

    @Test
    void insertsGoOnWhenANodeDies() {
        Node dying = cluster.start();
        try (var context =
                run("flaked.addresses=" + dying.address() + "," + cluster.node().address())) {
            insert(context, 20);
            dying.kill();
            insert(context, 20);
            assertEquals(
                    40,
                    context.getBean(JdbcTemplate.class).queryForObject("select count(*) from article", Integer.class));
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            assertEquals(
                    40, registry.get("flaked.client.calls").functionCounter().count());
            assertEquals(
                    0, registry.get("flaked.client.failures").functionCounter().count());
            assertEquals(
                    0,
                    registry.get("flaked.client.node.healthy")
                            .tag("address", dying.address())
                            .gauge()
                            .value());
            assertEquals(
                    1,
                    registry.get("flaked.client.node.healthy")
                            .tag("address", cluster.node().address())
                            .gauge()
                            .value());
            var health = context.getBean("flakedHealthIndicator", HealthIndicator.class)
                    .health();
            assertEquals(Status.UP, health.getStatus());
            assertEquals("healthy", health.getDetails().get(cluster.node().address()));
        }
    }

    @Test
    void refusalFailsTheInsertAndTheHealth() {
        String address = cluster.startWithToken().address();
        try (var context = run("flaked.addresses=" + address)) {
            assertEquals(
                    "NOAUTH",
                    assertThrows(UnavailableException.class, () -> insert(context, 1))
                            .code());
            var health = context.getBean("flakedHealthIndicator", HealthIndicator.class)
                    .health();
            assertEquals(Status.DOWN, health.getStatus());
            assertNotNull(health.getDetails().get("error"));
        }
        try (var context = run("flaked.addresses=" + address, "flaked.token=" + cluster.token())) {
            insert(context, 1);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoClients {
        @Bean
        FlakedClient orders() {
            return FlakedClient.builder().addresses(cluster.node().address()).build();
        }

        @Bean
        FlakedClient users() {
            return FlakedClient.builder().addresses("127.0.0.1:1").build();
        }
    }

    @Test
    void eachOfTwoClientsHasHealthAndMetrics() {
        try (var context = run(TwoClients.class)) {
            var health = context.getBean("flakedHealthIndicator", CompositeHealthContributor.class);
            assertEquals(
                    Status.UP,
                    ((HealthIndicator) health.getContributor("orders")).health().getStatus());
            assertEquals(
                    Status.DOWN,
                    ((HealthIndicator) health.getContributor("users")).health().getStatus());
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            for (var client : Map.of("orders", 0, "users", 1).entrySet()) {
                assertEquals(
                        (double) client.getValue(),
                        registry.get("flaked.client.failures")
                                .tag("client", client.getKey())
                                .functionCounter()
                                .count());
            }
        }
    }

    @Test
    void sslBundleIsUsed() {
        String address = "flaked.addresses=" + cluster.startWithTls().address();
        try (var context = run(
                address,
                "flaked.ssl-bundle=ids",
                "spring.ssl.bundle.pem.ids.truststore.certificate=file:" + cluster.certificate())) {
            insert(context, 1);
        }
        try (var context = run(address)) {
            assertThrows(FlakedException.class, () -> insert(context, 1));
        }
    }

    @Test
    void theProgramsOwnClientIsUsed() {
        try (var context = run(OwnClient.class)) {
            assertSame(OwnClient.CLIENT, context.getBean(FlakedClient.class));
        }
    }

    @Test
    void wrongAddressIsExplained() {
        Throwable failure = assertThrows(RuntimeException.class, () -> run("flaked.addresses=ids:port"));
        FailureAnalysis analysis = new InvalidPropertyException.Analyzer().analyze(failure);
        assertNotNull(analysis);
        assertInstanceOf(InvalidPropertyException.class, analysis.getCause());
        assertTrue(analysis.getDescription().startsWith("flaked.addresses: "), analysis.getDescription());
        assertTrue(analysis.getAction().contains("host:port"), analysis.getAction());
    }

    @Test
    void missingSslBundleIsExplained() {
        Throwable failure = assertThrows(RuntimeException.class, () -> run("flaked.ssl-bundle=none"));
        FailureAnalysis analysis = new InvalidPropertyException.Analyzer().analyze(failure);
        assertNotNull(analysis);
        assertTrue(analysis.getDescription().startsWith("flaked.ssl-bundle: "), analysis.getDescription());
    }
}
