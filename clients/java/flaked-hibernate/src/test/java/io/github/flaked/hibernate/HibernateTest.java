package io.github.flaked.hibernate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.client.FlakedException;
import io.github.flaked.client.RefusedException;
import io.github.flaked.test.Cluster;
import io.github.flaked.test.Node;
import java.util.function.Supplier;
import org.hibernate.HibernateException;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Hibernate without Spring inserts rows into H2, on real nodes (flaked serve with ZooKeeper). */
class HibernateTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    private static Configuration configuration(String addresses, Class<?>... entities) {
        Configuration configuration = new Configuration()
                .setProperty("hibernate.connection.url", "jdbc:h2:mem:")
                .setProperty("hibernate.hbm2ddl.auto", "create")
                .setProperty("hibernate.jdbc.batch_size", "50")
                .setProperty("hibernate.generate_statistics", "true")
                .setProperty("flaked.addresses", addresses);
        for (Class<?> entity : entities) {
            configuration.addAnnotatedClass(entity);
        }
        return configuration;
    }

    private static void insert(SessionFactory factory, int rows, Supplier<Object> entity) {
        factory.inTransaction(session -> {
            for (int i = 0; i < rows; i++) {
                session.persist(entity.get());
            }
        });
    }

    @Test
    void manyRowsNeedFewRequestsAndFewStatements() {
        Configuration configuration =
                configuration(cluster.node().address(), Article.class).setProperty("flaked.prefetch", "1000");
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            long before = cluster.node().stat("requests_get_ok");
            insert(factory, 400, Article::new);
            long requests = cluster.node().stat("requests_get_ok") - before;
            long statements = factory.getStatistics().getPrepareStatementCount();
            assertTrue(requests < 100, requests + " requests for 400 rows");
            assertTrue(statements < 20, statements + " statements for 400 rows");
        }
    }

    @Test
    void idsAreNumbersTextsOrValuesOfASequence() {
        cluster.createSequence("order");
        try (SessionFactory factory = configuration(cluster.node().address(), Invoice.class, Note.class)
                .buildSessionFactory()) {
            insert(factory, 3, Invoice::new);
            insert(factory, 1, Note::new);
            factory.inSession(session -> {
                assertEquals(
                        3L,
                        session.createQuery("select count(distinct id) from Invoice", Long.class)
                                .getSingleResult());
                String note =
                        session.createQuery("select id from Note", String.class).getSingleResult();
                assertTrue(Long.parseLong(note) > 1_000_000_000_000L, note);
            });
        }
    }

    @Test
    void insertsGoOnWhenANodeDies() {
        Node dying = cluster.start();
        try (SessionFactory factory = configuration(
                        dying.address() + ", " + cluster.node().address(), Article.class)
                .buildSessionFactory()) {
            insert(factory, 10, Article::new);
            dying.kill();
            insert(factory, 10, Article::new);
            factory.inSession(session -> assertEquals(
                    20L,
                    session.createQuery("select count(*) from Article", Long.class)
                            .getSingleResult()));
        }
    }

    @Test
    void refusalIsTheCauseOfHibernatesException() {
        String address = cluster.startWithToken().address();
        try (SessionFactory factory = configuration(address, Article.class).buildSessionFactory()) {
            HibernateException e = assertThrows(HibernateException.class, () -> insert(factory, 1, Article::new));
            assertEquals(
                    "NOAUTH",
                    assertInstanceOf(FlakedException.class, e.getCause()).code());
        }
        try (SessionFactory factory = configuration(address, Article.class)
                .setProperty("flaked.token", cluster.token())
                .setProperty("flaked.timeout", "2s")
                .setProperty("flaked.node-timeout", "500ms")
                .buildSessionFactory()) {
            insert(factory, 1, Article::new);
        }
    }

    @Test
    void unknownSequenceIsNamed() {
        String none = cluster.node().address();
        try (SessionFactory factory = configuration(none, Missing.class).buildSessionFactory()) {
            HibernateException e = assertThrows(HibernateException.class, () -> insert(factory, 1, Missing::new));
            assertEquals(
                    "no-sequence",
                    assertInstanceOf(RefusedException.class, e.getCause()).reason());
        }
    }

    @Test
    void theClientIsClosedWithTheFactory() {
        FlakedIdGenerator generator;
        try (SessionFactory factory =
                configuration(cluster.node().address(), Article.class).buildSessionFactory()) {
            generator = (FlakedIdGenerator) factory.unwrap(org.hibernate.engine.spi.SessionFactoryImplementor.class)
                    .getMappingMetamodel()
                    .getEntityDescriptor(Article.class)
                    .getGenerator();
            assertInstanceOf(Long.class, generator.generate(null, null));
        }
        HibernateException e = assertThrows(HibernateException.class, () -> generator.generate(null, null));
        assertInstanceOf(io.github.flaked.client.ClosedException.class, e.getCause());
    }

    @Test
    void wrongSettingAndWrongTypeAreNamed() {
        String setting = message(configuration("ids:port", Article.class));
        assertTrue(setting.contains("flaked.addresses"), setting);
        String type = message(configuration(cluster.node().address(), Wrong.class));
        assertTrue(type.contains("Wrong.id"), type);
    }

    // As Spring does when it builds a native image: no beans, and no settings.
    @Test
    void aMappingIsReadWithoutAClient() {
        Configuration configuration = configuration("", Article.class);
        configuration.getProperties().remove("flaked.addresses");
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            HibernateException e = assertThrows(HibernateException.class, () -> insert(factory, 1, Article::new));
            assertTrue(e.getMessage().contains("@FlakedId has no client. Set flaked.addresses"), e.getMessage());
            assertTrue(e.getMessage().contains("@DataJpaTest, @Import the class"), e.getMessage());
        }
    }

    private static String message(Configuration configuration) {
        StringBuilder messages = new StringBuilder();
        Throwable e = assertThrows(RuntimeException.class, configuration::buildSessionFactory);
        for (; e != null; e = e.getCause()) {
            messages.append(e.getMessage()).append('\n');
        }
        return messages.toString();
    }
}
