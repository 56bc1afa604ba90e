package io.github.flaked.hibernate.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.hibernate.FlakedId;
import io.github.flaked.test.Cluster;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.transaction.support.TransactionTemplate;

/** A Spring Boot application with JPA uses the client of the starter, on a real node (flaked serve with ZooKeeper). */
class SpringTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    // No scan for components: it would find the clients of a single test.
    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    @Entity
    static class Book {
        @Id
        @FlakedId
        Long id;
    }

    @Test
    void generatorUsesTheBean() {
        try (var context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("logging.level.root=WARN", "spring.jpa.hibernate.ddl-auto=create")
                // Hibernate has it, too, if it is a system property. Nobody listens there.
                .properties("spring.jpa.properties.flaked.addresses=127.0.0.1:1")
                .run("--flaked.addresses=" + cluster.node().address())) {
            EntityManager entities = context.getBean(EntityManager.class);
            context.getBean(TransactionTemplate.class).executeWithoutResult(status -> {
                entities.persist(new Book());
                entities.persist(new Book());
            });
            assertEquals(
                    2L,
                    entities.createQuery("select count(b) from SpringTest$Book b")
                            .getSingleResult());
            assertEquals(2, context.getBean(FlakedClient.class).stats().calls());
        }
    }

    @Entity
    static class Ticket {
        @Id
        @FlakedId(client = "users")
        Long id;
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoClients {
        @Bean
        FlakedClient orders() {
            return FlakedClient.builder().addresses("127.0.0.1:1").build();
        }

        @Bean
        FlakedClient users() {
            return FlakedClient.builder().addresses(cluster.node().address()).build();
        }
    }

    @Test
    void theEntityNamesOneOfTwoClients() {
        try (var context = new SpringApplicationBuilder(Application.class, TwoClients.class)
                .web(WebApplicationType.NONE)
                .properties("logging.level.root=OFF", "spring.jpa.hibernate.ddl-auto=create")
                .run()) {
            EntityManager entities = context.getBean(EntityManager.class);
            var transaction = context.getBean(TransactionTemplate.class);
            transaction.executeWithoutResult(status -> entities.persist(new Ticket()));
            assertEquals(1, context.getBean("users", FlakedClient.class).stats().calls());
            Throwable e = assertThrows(
                    RuntimeException.class,
                    () -> transaction.executeWithoutResult(status -> entities.persist(new Book())));
            assertTrue(e.getMessage().contains("several clients to choose from: [orders, users]"), e.getMessage());
        }
    }
}
