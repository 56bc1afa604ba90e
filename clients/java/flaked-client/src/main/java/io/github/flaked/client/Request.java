package io.github.flaked.client;

import java.util.concurrent.CompletableFuture;

/**
 * One node's try at a query. It fails with a {@link RefusedException}, with a SocketTimeoutException if the node was
 * silent but had less than nodeTimeout, with an EOFException if it can be asked again, or with another IOException.
 */
final class Request extends CompletableFuture<long[]> {
    final Query query;
    final Connection connection;
    final long share; // how long the node may be silent
    final int failures; // how often it had failed before
    volatile long since = Pool.now(); // when the request was made, then when it was sent
    int missing; // lines of the reply
    private final Stock stock; // whose lower values come first, or null
    private final long[] values;

    Request(Query query, Connection connection, long share, Stock stock) {
        this.stock = stock;
        this.query = query;
        this.connection = connection;
        this.share = share;
        failures = connection.node.failures;
        missing = query.lines();
        values = new long[query.lines() * query.perLine()];
    }

    /** Takes a line of the reply, and reports whether it can be one. */
    boolean take(String line) {
        if (missing == query.lines() && line.startsWith("-") && line.matches("-[A-Z]\\S*( .*)?")) {
            missing = 0;
            String reply = line.substring(1).replaceAll("\\p{Cntrl}", "?");
            completeExceptionally(new RefusedException(connection.node.address.text(), reply));
            return true;
        }
        boolean accepted = query.accept(line, values, (query.lines() - missing) * query.perLine());
        if (accepted && --missing == 0) {
            if (stock != null && !isDone()) {
                values[0] = stock.exchange(values[0], since);
            }
            complete(values);
        }
        return accepted;
    }
}
