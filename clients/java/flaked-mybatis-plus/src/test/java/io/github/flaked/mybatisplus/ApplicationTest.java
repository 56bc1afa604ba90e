package io.github.flaked.mybatisplus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.baomidou.mybatisplus.core.MybatisConfiguration;
import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.FlakedException;
import io.github.flaked.mybatisplus.narrow.NarrowMapper;
import io.github.flaked.test.Cluster;
import io.github.flaked.test.Node;
import org.apache.ibatis.exceptions.PersistenceException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.mybatis.spring.annotation.MapperScan;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;

/** A Spring Boot application with MyBatis-Plus and H2, on real nodes (flaked serve with ZooKeeper). */
class ApplicationTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    // No scan for components: it would find the classes of single tests.
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @MapperScan(basePackageClasses = ArticleMapper.class, markerInterface = Scanned.class)
    static class Application {}

    interface Scanned {}

    private static ConfigurableApplicationContext run(String addresses) {
        return run(new Class<?>[] {Application.class}, "--flaked.addresses=" + addresses);
    }

    private static ConfigurableApplicationContext run(Class<?>[] sources, String... properties) {
        var context = new SpringApplicationBuilder(sources)
                .web(WebApplicationType.NONE)
                .properties("logging.level.root=OFF", "spring.datasource.generate-unique-name=true")
                .properties("mybatis-plus.global-config.banner=false")
                .run(properties);
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

    @Configuration(proxyBeanMethods = false)
    @MapperScan(basePackageClasses = NarrowMapper.class)
    static class Narrow {}

    @Test
    void aKeyThatIsTooNarrowEndsTheStart() {
        String address = "--flaked.addresses=" + cluster.node().address();
        Throwable e = assertThrows(
                IllegalStateException.class, () -> run(new Class<?>[] {Application.class, Narrow.class}, address));
        assertTrue(
                e.getMessage().contains("NarrowMapper$Row.id: an ID of 63 bits does not fit into Integer"),
                e.getMessage());
    }

    @Test
    void aKeyThatIsTooNarrowIsRefusedAtTheInsert() {
        // Without Spring nothing checks at the start.
        var configuration = new MybatisConfiguration();
        configuration.addMapper(NarrowMapper.class);
        var generator = new FlakedIdentifierGenerator(
                FlakedClient.builder().addresses(cluster.node().address()).build());
        Throwable e = assertThrows(IllegalStateException.class, () -> generator.nextId(new NarrowMapper.Row()));
        assertTrue(e.getMessage().contains("Use Long or String"), e.getMessage());
        assertTrue(generator.nextId(new Article()) > 1_000_000_000_000L);
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
    void oneOfTwoClientsIsChosen() {
        var sources = new Class<?>[] {Application.class, TwoClients.class};
        try (var context = run(sources, "--flaked.mybatis-plus.client=users")) {
            context.getBean(ArticleMapper.class).insert(new Article());
            assertEquals(1, context.getBean("users", FlakedClient.class).stats().calls());
        }
        for (String[] properties : new String[][] {{}, {"--flaked.mybatis-plus.client=none"}}) {
            Throwable e = assertThrows(RuntimeException.class, () -> run(sources, properties));
            while (e.getCause() != null) {
                e = e.getCause();
            }
            assertTrue(e.getMessage().contains("[orders, users]"), e.getMessage());
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
