package io.github.flaked.hibernate.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.hibernate.FlakedId;
import io.github.flaked.test.Cluster;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.transaction.support.TransactionTemplate;

/** A Spring Boot application with JPA uses the client of the starter, on a real node (flaked serve with ZooKeeper). */
class SpringTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    @SpringBootApplication
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
}
