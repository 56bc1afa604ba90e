package io.github.flaked.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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
public final class FlakedClient implements AutoCloseable {
    private final Dispatcher dispatcher;
    private final Stock stock;
    private final long timeout;

    private FlakedClient(Dispatcher dispatcher, Stock stock, long timeout) {
        this.dispatcher = dispatcher;
        this.stock = stock;
        this.timeout = timeout;
    }

    /**
     * Returns a builder of a client.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns one ID.
     *
     * @return the ID
     * @throws UnavailableException if no node answered within the client's timeout
     * @throws RefusedException if a node refused the request itself
     * @throws ClosedException if the client is closed
     */
    public long next() {
        return one(stock, "GET", false);
    }

    /**
     * Returns one ID, as {@link #next()} does, with a timeout of its own.
     *
     * @param timeout how long the call may take
     * @return the ID
     */
    public long next(Duration timeout) {
        return withTimeout(timeout).next();
    }

    /**
     * Returns several IDs, all of one request and never prefetched ones. Ends as {@link #next()} does.
     *
     * @param n how many, 1 to 10,000
     * @return the IDs, in ascending order
     */
    public long[] next(int n) {
        Check.count("the number of IDs", n, 1, Check.MAX_COUNT);
        return many(n == 1 ? "GET" : "GET " + n, n, 1, false);
    }

    /**
     * Returns one ID later, without blocking. The future ends as {@link #next()} does. Its dependents run in the common
     * pool. Cancelling it ends the call.
     *
     * @return the future of the ID
     */
    public CompletableFuture<Long> nextAsync() {
        return oneAsync(stock, "GET", false);
    }

    /**
     * Returns a named sequence without prefetching.
     *
     * @param name the name of the sequence
     * @return the sequence
     */
    public Sequence sequence(String name) {
        return new Sequence(this, Check.name(name), null);
    }

    /**
     * Returns a named sequence, of which values are requested in advance. Do not prefetch from a strict or ordered
     * sequence: its order is lost. Keep the returned sequence: each has prefetched values of its own.
     *
     * @param name the name of the sequence
     * @param prefetch how many values are requested in advance, 0 to 100,000
     * @param maxAge how long a value may be kept
     * @return the sequence
     */
    public Sequence sequence(String name, int prefetch, Duration maxAge) {
        Check.count("prefetch", prefetch, 0, Check.MAX_PREFETCH);
        String request = Sequence.request(Check.name(name));
        long age = Check.nanos("maxAge", maxAge, Builder.MIN_TIME);
        Stock stock = prefetch == 0 ? null : new Stock(dispatcher, request, true, prefetch, age, timeout);
        return new Sequence(this, name, stock);
    }

    /**
     * Returns this client with another timeout of its calls, and of those of its sequences. All else is shared: if one
     * of the two is closed, both are.
     *
     * @param timeout how long a call may take
     * @return the view
     */
    public FlakedClient withTimeout(Duration timeout) {
        return new FlakedClient(dispatcher, stock, Check.nanos("the timeout", timeout, Duration.ofNanos(1)));
    }

    /**
     * Returns what the client has counted, and which nodes are healthy.
     *
     * @return a snapshot
     */
    public Stats stats() {
        return dispatcher.stats();
    }

    /** Ends the connections. Calls that wait, and later ones, fail with {@link ClosedException}. */
    @Override
    public void close() {
        dispatcher.close();
    }

    long one(Stock stock, String request, boolean ofSequence) {
        long value = stock == null ? -1 : stock.take();
        return value >= 0 ? value : many(request, 1, 1, ofSequence)[0];
    }

    CompletableFuture<Long> oneAsync(Stock stock, String request, boolean ofSequence) {
        long value = stock == null ? -1 : stock.take();
        return value >= 0
                ? CompletableFuture.completedFuture(value)
                : dispatcher.start(new Call(request, 1, 1, ofSequence, timeout)).inPool();
    }

    long[] many(String request, int lines, int perLine, boolean ofSequence) {
        return dispatcher
                .start(new Call(request, lines, perLine, ofSequence, timeout))
                .await();
    }

    /** Builds a client. Only the addresses have no default that fits most programs. */
    public static final class Builder {
        static final Duration MIN_TIME = Duration.ofMillis(1);
        static final long DEFAULT_MAX_AGE = TimeUnit.SECONDS.toNanos(1);

        private List<Address> addresses = List.of(Address.parse("127.0.0.1"));
        private String token;
        private SSLContext tls;
        private long timeout = TimeUnit.SECONDS.toNanos(5);
        private long nodeTimeout = TimeUnit.SECONDS.toNanos(1);
        private int prefetch;
        private long maxAge = DEFAULT_MAX_AGE;

        private Builder() {}

        /**
         * Sets the addresses of nodes of one cluster, the preferred one first: {@code host:port}, {@code host} (port
         * 7609), {@code [::1]:7609} or {@code unix:/path}. The default is 127.0.0.1:7609.
         *
         * @param addresses the addresses
         * @return this builder
         */
        public Builder addresses(String... addresses) {
            return addresses(List.of(addresses));
        }

        /**
         * Sets the addresses, as {@link #addresses(String...)} does.
         *
         * @param addresses the addresses
         * @return this builder
         */
        public Builder addresses(List<String> addresses) {
            if (addresses.isEmpty()) {
                throw new IllegalArgumentException("no address. Give at least one, such as 127.0.0.1:7609");
            }
            this.addresses = addresses.stream().map(Address::parse).toList();
            return this;
        }

        /**
         * Sets the token that is sent to each node. The default, null, sends none.
         *
         * @param token the token
         * @return this builder
         */
        public Builder token(String token) {
            this.token = Check.token(token);
            return this;
        }

        /**
         * Sets what TLS to TCP addresses uses. Host names are verified. The default, null, is plain TCP.
         *
         * @param context the certificates to trust and to show
         * @return this builder
         */
        public Builder tls(SSLContext context) {
            this.tls = context;
            return this;
        }

        /**
         * Sets how long a call may take, over all nodes. The default is 5 s.
         *
         * @param timeout at least 1 ms
         * @return this builder
         */
        public Builder timeout(Duration timeout) {
            this.timeout = Check.nanos("the timeout", timeout, MIN_TIME);
            return this;
        }

        /**
         * Sets how long one node may be silent before the next one is asked. The default is 1 s.
         *
         * @param timeout at least 1 ms
         * @return this builder
         */
        public Builder nodeTimeout(Duration timeout) {
            this.nodeTimeout = Check.nanos("nodeTimeout", timeout, MIN_TIME);
            return this;
        }

        /**
         * Sets how many IDs are requested in advance, so that {@link FlakedClient#next()} need not wait. The default is
         * none.
         *
         * @param n 0 to 100,000
         * @return this builder
         */
        public Builder prefetch(int n) {
            this.prefetch = Check.count("prefetch", n, 0, Check.MAX_PREFETCH);
            return this;
        }

        /**
         * Sets how long a prefetched ID may be kept, from its request on. The default is 1 s.
         *
         * @param age at least 1 ms
         * @return this builder
         */
        public Builder maxAge(Duration age) {
            this.maxAge = Check.nanos("maxAge", age, MIN_TIME);
            return this;
        }

        /**
         * Returns a new client. Nodes that are down cause no exception here.
         *
         * @return the client
         */
        public FlakedClient build() {
            List<Node> nodes = addresses.stream().map(Node::new).toList();
            Dispatcher dispatcher = new Dispatcher(nodes, new Config(token, tls, nodeTimeout));
            Stock stock = prefetch == 0 ? null : new Stock(dispatcher, "GET", false, prefetch, maxAge, timeout);
            return new FlakedClient(dispatcher, stock, timeout);
        }
    }
}
