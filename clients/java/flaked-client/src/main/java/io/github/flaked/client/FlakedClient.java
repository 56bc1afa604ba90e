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
 *
 * <p>JavaScript loses the low bits of numbers above 2<sup>53</sup>. Send IDs as strings in JSON:
 * {@code Long.toString(id)}, or Jackson's {@code @JsonSerialize(using = ToStringSerializer.class)}.
 */
public final class FlakedClient extends Source implements AutoCloseable {
    private FlakedClient(Stock stock, long timeout) {
        super("GET", stock, timeout);
    }

    /** {@return a builder of a client} */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * {@return a named sequence without prefetching}
     * @param name the name of the sequence
     */
    public Sequence sequence(String name) {
        return sequence(name, 0, Duration.ofDays(1));
    }

    /**
     * {@return a named sequence, of which values are requested in advance} Each has prefetched values of its own, so
     * keep it. Do not prefetch from a strict or ordered sequence: its order is lost.
     * @param name the name of the sequence
     * @param prefetch how many values are requested in advance, 0 to 100,000
     * @param maxAge how long a value may be kept
     */
    public Sequence sequence(String name, int prefetch, Duration maxAge) {
        String rule = "the name of a sequence must begin with a letter, a digit, _ or {, go on with letters, digits "
                + "and _ . : - { } /, not have digits alone, and have at most 128 characters";
        Check.require(name.matches("(?![0-9]+$)[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}"), rule);
        Check.count("prefetch", prefetch, 0, Stock.MOST);
        long age = Check.nanos("maxAge", maxAge, Check.MS);
        String verb = "NEXT " + name;
        return new Sequence(verb, new Stock(pool, verb, prefetch, age), timeout);
    }

    /**
     * {@return this client with another timeout of its calls, and of those of its sequences} All else is shared: if one
     * of the two is closed, both are.
     * @param timeout how long a call may take
     */
    public FlakedClient withTimeout(Duration timeout) {
        return new FlakedClient(stock, Check.nanos("the timeout", timeout, 1));
    }

    /** {@return what the client has counted, and which nodes are healthy} */
    public Stats stats() {
        return pool.stats();
    }

    /** Ends the connections. Calls that wait, and later ones, fail with {@link ClosedException}. */
    @Override
    public void close() {
        pool.close();
    }

    /** Builds a client. Only the addresses have no default that fits most programs. */
    public static final class Builder {
        private List<Address> addresses = List.of(Address.parse("127.0.0.1"));
        private String token;
        private SSLContext tls;
        private long timeout = TimeUnit.SECONDS.toNanos(5);
        private long nodeTimeout = TimeUnit.SECONDS.toNanos(1);
        private int prefetch;
        private long maxAge = TimeUnit.SECONDS.toNanos(1);

        private Builder() {}

        /**
         * {@return this builder} Sets the nodes of a cluster, the preferred one first. The default is 127.0.0.1:7609.
         * @param addresses {@code host:port}, {@code host} (port 7609), {@code [::1]:7609} or {@code unix:/path}
         */
        public Builder addresses(String... addresses) {
            return addresses(List.of(addresses));
        }

        /**
         * {@return this builder} Sets the addresses, as {@link #addresses(String...)} does.
         * @param addresses the addresses
         */
        public Builder addresses(List<String> addresses) {
            Check.require(!addresses.isEmpty(), "no address. Give at least one, such as 127.0.0.1:7609");
            this.addresses = addresses.stream().map(Address::parse).toList();
            return this;
        }

        /**
         * {@return this builder} Sets the token that is sent to each node.
         * @param token the token, or null, the default
         */
        public Builder token(String token) {
            boolean legal = token == null || token.matches("[!-~]{1,256}");
            Check.require(legal, "the token must be 1 to 256 printable ASCII characters without blanks");
            this.token = token;
            return this;
        }

        /**
         * {@return this builder} Sets what TLS to TCP addresses uses. Host names are verified.
         * @param context the certificates to trust and to show, or null, the default, for plain TCP
         */
        public Builder tls(SSLContext context) {
            this.tls = context;
            return this;
        }

        /**
         * {@return this builder} Sets how long a call may take, over all nodes. The default is 5 s.
         * @param timeout at least 1 ms
         */
        public Builder timeout(Duration timeout) {
            this.timeout = Check.nanos("the timeout", timeout, Check.MS);
            return this;
        }

        /**
         * {@return this builder} Sets how long a node may be silent before the next one is asked. The default is 1 s.
         * @param timeout at least 1 ms
         */
        public Builder nodeTimeout(Duration timeout) {
            this.nodeTimeout = Check.nanos("nodeTimeout", timeout, Check.MS);
            return this;
        }

        /**
         * {@return this builder} Sets how many IDs are requested in advance, so that next() need not wait.
         * @param n 0, the default, to 100,000
         */
        public Builder prefetch(int n) {
            this.prefetch = Check.count("prefetch", n, 0, Stock.MOST);
            return this;
        }

        /**
         * {@return this builder} Sets how long a prefetched ID may be kept, from its request on. The default is 1 s.
         * @param age at least 1 ms
         */
        public Builder maxAge(Duration age) {
            this.maxAge = Check.nanos("maxAge", age, Check.MS);
            return this;
        }

        /** {@return a new client} Nodes that are down cause no exception here. */
        public FlakedClient build() {
            Pool pool = new Pool(addresses, token, tls, nodeTimeout);
            return new FlakedClient(new Stock(pool, "GET", prefetch, maxAge), timeout);
        }
    }
}
