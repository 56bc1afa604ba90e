package io.github.flaked.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.client.ClosedException;
import io.github.flaked.client.FlakedException;
import io.github.flaked.test.Cluster;
import io.github.flaked.test.Node;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Properties;
import javax.sql.DataSource;
import org.apache.shardingsphere.driver.api.yaml.YamlShardingSphereDataSourceFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Inserts rows into two tables of H2 through ShardingSphere-JDBC, on real nodes (flaked serve with ZooKeeper). */
class ShardingTest {
    @RegisterExtension
    static final Cluster cluster = new Cluster();

    private static int databases;

    /** A sharded database, with a connection to H2 that sees its tables. */
    private record Shop(String h2, DataSource sharded) implements AutoCloseable {
        static Shop open(String props) throws Exception {
            String h2 = "jdbc:h2:mem:shop" + databases++ + ";DB_CLOSE_DELAY=-1;MODE=MYSQL;DATABASE_TO_UPPER=false";
            try (Connection connection = DriverManager.getConnection(h2, "sa", "");
                    Statement statement = connection.createStatement()) {
                statement.execute("create table t_order_0 (order_id bigint primary key, item varchar(9))");
                statement.execute("create table t_order_1 (order_id bigint primary key, item varchar(9))");
            }
            String yaml =
                    """
                    dataSources:
                      ds:
                        dataSourceClassName: com.zaxxer.hikari.HikariDataSource
                        driverClassName: org.h2.Driver
                        jdbcUrl: %s
                        username: sa
                        password: ''
                    rules:
                    - !SHARDING
                      tables:
                        t_order:
                          actualDataNodes: ds.t_order_$->{0..1}
                          tableStrategy:
                            standard:
                              shardingColumn: order_id
                              shardingAlgorithmName: even
                          keyGenerateStrategy:
                            column: order_id
                            keyGeneratorName: ids
                      shardingAlgorithms:
                        even:
                          type: INLINE
                          props:
                            algorithm-expression: t_order_$->{order_id %% 2}
                      keyGenerators:
                        ids:
                          type: FLAKED
                          props: %s
                    """
                            .formatted(h2, props);
            return new Shop(
                    h2, YamlShardingSphereDataSourceFactory.createDataSource(yaml.getBytes(StandardCharsets.UTF_8)));
        }

        void insert(int rows) throws Exception {
            try (Connection connection = sharded.getConnection();
                    Statement statement = connection.createStatement()) {
                for (int i = 0; i < rows; i++) {
                    statement.executeUpdate("insert into t_order (item) values ('a')");
                }
            }
        }

        long count(String table) throws Exception {
            try (Connection connection = DriverManager.getConnection(h2, "sa", "");
                    Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("select count(*) from " + table)) {
                result.next();
                return result.getLong(1);
            }
        }

        @Override
        public void close() throws SQLException {
            try {
                ((AutoCloseable) sharded).close();
            } catch (SQLException e) {
                throw e;
            } catch (Exception e) {
                throw new SQLException(e);
            }
        }
    }

    @Test
    void insertsGoOnWhenANodeDies() throws Exception {
        Node dying = cluster.start();
        cluster.createSequence("order");
        String addresses = dying.address() + ", " + cluster.node().address();
        try (Shop shop = Shop.open("{addresses: '%s', sequence: order}".formatted(addresses))) {
            shop.insert(10);
            dying.kill();
            shop.insert(10);
            assertEquals(20, shop.count("t_order_0") + shop.count("t_order_1"));
            assertTrue(shop.count("t_order_0") > 0 && shop.count("t_order_1") > 0);
        }
    }

    @Test
    void oneStatementTakesItsKeysWithOneRequest() throws Exception {
        try (Shop shop = Shop.open("{addresses: '%s'}".formatted(cluster.node().address()));
                Connection connection = shop.sharded().getConnection();
                Statement statement = connection.createStatement()) {
            long before = cluster.node().stat("requests_get_ok");
            statement.executeUpdate("insert into t_order (item) values ('a'), ('b'), ('c')");
            assertEquals(1, cluster.node().stat("requests_get_ok") - before);
            assertEquals(3, shop.count("t_order_0") + shop.count("t_order_1"));
        }
    }

    @Test
    void refusalIsTheCauseOfTheException() throws Exception {
        try (Shop shop =
                Shop.open("{addresses: '%s'}".formatted(cluster.startWithToken().address()))) {
            Throwable e = assertThrows(Exception.class, () -> shop.insert(1));
            while (e != null && !(e instanceof FlakedException)) {
                e = e.getCause();
            }
            assertNotNull(e);
            assertEquals("NOAUTH", ((FlakedException) e).code());
        }
    }

    @Test
    void closedDataSourceClosesTheClient() throws Exception {
        long before = cluster.node().stat("conns_open");
        Shop shop = Shop.open("{addresses: '%s'}".formatted(cluster.node().address()));
        shop.insert(1);
        assertEquals(before + 1, cluster.node().stat("conns_open"));
        shop.close();
        assertTimeoutPreemptively(Duration.ofSeconds(10), () -> {
            while (cluster.node().stat("conns_open") > before) {
                Thread.onSpinWait();
            }
        });
    }

    @Test
    void wrongPropertyIsNamed() {
        Properties props = new Properties();
        props.setProperty("timeout", "soon");
        RuntimeException e = assertThrows(RuntimeException.class, () -> new FlakedKeyGenerateAlgorithm().init(props));
        assertTrue(e.getMessage().contains("timeout"), e.getMessage());
    }

    @Test
    void closedGeneratorFails() {
        FlakedKeyGenerateAlgorithm generator = new FlakedKeyGenerateAlgorithm();
        generator.init(new Properties());
        generator.close();
        assertThrows(ClosedException.class, () -> generator.generateKeys(null, 1));
    }
}
