package io.github.flaked.mybatisplus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.FlakedException;
import io.github.flaked.test.Cluster;
import io.github.flaked.test.Node;
import org.apache.ibatis.exceptions.PersistenceException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;

/** A Spring Boot application with MyBatis-Plus and H2, on real nodes (flaked serve with ZooKeeper). */
class ApplicationTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    @SpringBootApplication
    static class Application {}

    private static ConfigurableApplicationContext run(String addresses) {
        var context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("logging.level.root=WARN", "spring.datasource.generate-unique-name=true")
                .run("--flaked.addresses=" + addresses, "--mybatis-plus.global-config.banner=false");
        context.getBean(JdbcTemplate.class).execute("create table article (id bigint primary key, title varchar(9))");
        return context;
    }

    @Test
    void insertsGoOnWhenANodeDies() {
        Node dying = cluster.start();
        try (var context = run(dying.address() + "," + cluster.node().address())) {
            ArticleMapper mapper = context.getBean(ArticleMapper.class);
            for (int i = 0; i < 10; i++) {
                mapper.insert(new Article());
            }
            dying.kill();
            for (int i = 0; i < 10; i++) {
                mapper.insert(new Article());
            }
            assertEquals(20, mapper.selectCount(null));
            assertEquals(20, context.getBean(FlakedClient.class).stats().calls());
        }
    }

    @Test
    void refusalIsTheCauseOfTheException() {
        try (var context = run(cluster.startWithToken().address())) {
            ArticleMapper mapper = context.getBean(ArticleMapper.class);
            Throwable e = assertThrows(RuntimeException.class, () -> mapper.insert(new Article()));
            assertInstanceOf(PersistenceException.class, e.getCause());
            assertEquals(
                    "NOAUTH",
                    assertInstanceOf(FlakedException.class, root(e).getCause()).code());
        }
    }

    /** Returns the last exception that is not the client's. */
    private static Throwable root(Throwable e) {
        while (!(e.getCause() instanceof FlakedException) && e.getCause() != null) {
            e = e.getCause();
        }
        return e;
    }
}
