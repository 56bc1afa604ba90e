package io.github.flaked.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;

/**
 * Gets 64-bit IDs, and values of named sequences, from flaked nodes. One client is enough for a program: any number of
 * threads, platform or virtual, may use it at once, and their requests share a connection.
 *
 * <p>The nodes are asked in the order of their addresses: the first one as long as it answers. If a node cannot be
 * reached, is silent or refuses, its calls go to the next one at once. No value is returned twice, and no call takes
 * longer than its timeout. An interrupt ends a call with a {@link FlakedException}.
 */
public final class FlakedClient extends Source implements AutoCloseable {
    private FlakedClient(Stock stock, long timeout) {
        super(stock, timeout);
    }

    /** Returns a builder of a client. */
    public static Builder builder() {
        return new Builder();
    }

    /** Returns a named sequence without prefetching. */
    public Sequence sequence(String name) {
        return sequence(name, 0, Duration.ofDays(1));
    }

    /**
     * Returns a named sequence, of which up to 100,000 values are requested in advance, and kept up to maxAge. Each has
     * values of its own, so keep it. Do not prefetch from a strict or ordered sequence: its order is lost.
     */
    public Sequence sequence(String name, int prefetch, Duration maxAge) {
        String rule = "the name of a sequence must begin with a letter, a digit, _ or {, go on with letters, digits "
                + "and _ . : - { } /, not have digits alone, and have at most 128 characters";
        Check.require(name.matches("(?![0-9]+$)[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}"), rule);
        Check.count("prefetch", prefetch, 0, 100_000);
        long age = Check.nanos("maxAge", maxAge, Check.MS);
        return new Sequence(new Stock(stock.pool, "NEXT " + name, prefetch, age), timeout);
    }

    /** Returns this client with another timeout of its calls and sequences. If one of the two is closed, both are. */
    public FlakedClient withTimeout(Duration timeout) {
        return new FlakedClient(stock, Check.nanos("the timeout", timeout, 1));
    }

    /** Returns what the client has counted, and which nodes are healthy. */
    public Stats stats() {
        return stock.pool.stats();
    }

    /** Ends the connections. Calls that wait, and later ones, fail with {@link ClosedException}. */
    @Override
    public void close() {
        stock.pool.close();
    }

    /** Builds a client. Only the addresses have no default that fits most programs. */
    public static final class Builder {
        private List<Address> addresses = List.of(Address.parse("127.0.0.1"));
        private String cluster;
        private String token;
        private SSLContext tls;
        private long timeout = TimeUnit.SECONDS.toNanos(5);
        private long nodeTimeout = TimeUnit.SECONDS.toNanos(1);
        private int prefetch;
        private long maxAge = TimeUnit.SECONDS.toNanos(1);

        private Builder() {}

        /**
         * Sets the nodes of a cluster, the preferred one first: {@code host:port}, {@code host} (port 7609),
         * {@code [::1]:7609} or {@code unix:/path}. The default is 127.0.0.1:7609.
         */
        public Builder addresses(String... addresses) {
            return addresses(List.of(addresses));
        }

        /** Sets the addresses, as {@link #addresses(String...)} does. */
        public Builder addresses(List<String> addresses) {
            Check.require(!addresses.isEmpty(), "no address. Give at least one, such as 127.0.0.1:7609");
            this.addresses = addresses.stream().map(Address::parse).toList();
            return this;
        }

        /**
         * Sets the name or the UUID of the cluster. Nodes of others count as failed. The default is null, for the
         * cluster of the first node that answers.
         */
        public Builder cluster(String cluster) {
            boolean legal = cluster == null || cluster.matches("[A-Za-z0-9._-]{1,64}");
            Check.require(legal, "the cluster must be a name or a UUID: 1 to 64 letters, digits and . _ -");
            this.cluster = cluster;
            return this;
        }

        /** Sets the token that is sent to each node. The default is null, for none. */
        public Builder token(String token) {
            boolean legal = token == null || token.matches("[!-~]{1,256}");
            Check.require(legal, "the token must be 1 to 256 printable ASCII characters without blanks");
            this.token = token;
            return this;
        }

        /** Sets the certificates for TLS to TCP addresses. Host names are verified. The default is null, for none. */
        public Builder tls(SSLContext context) {
            this.tls = context;
            return this;
        }

        /** Sets how long a call may take, over all nodes: 1 ms or more. The default is 5 s. */
        public Builder timeout(Duration timeout) {
            this.timeout = Check.nanos("the timeout", timeout, Check.MS);
            return this;
        }

        /** Sets how long a node may be silent before the next one is asked: 1 ms or more. The default is 1 s. */
        public Builder nodeTimeout(Duration timeout) {
            this.nodeTimeout = Check.nanos("nodeTimeout", timeout, Check.MS);
            return this;
        }

        /** Sets how many IDs are requested in advance: 0, the default, to 100,000. Then next() need not wait. */
        public Builder prefetch(int n) {
            this.prefetch = Check.count("prefetch", n, 0, 100_000);
            return this;
        }

        /** Sets how long a prefetched ID may be kept, from its request on: 1 ms or more. The default is 1 s. */
        public Builder maxAge(Duration age) {
            this.maxAge = Check.nanos("maxAge", age, Check.MS);
            return this;
        }

        /** Returns a new client. Nodes that are down cause no exception here. */
        public FlakedClient build() {
            Pool pool = new Pool(addresses, new Pool.Options(token, tls, nodeTimeout, new Identity(cluster)));
            return new FlakedClient(new Stock(pool, "GET", prefetch, maxAge), timeout);
        }
    }
}
