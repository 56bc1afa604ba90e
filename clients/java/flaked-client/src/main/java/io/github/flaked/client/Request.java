package io.github.flaked.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;

/**
 * One node's try at a query. It fails with a {@link RefusedException}, with a SocketTimeoutException if the node was
 * silent but had less than nodeTimeout, with an EOFException if it may not have seen the request, or with another
 * IOException.
 */
final class Request extends CompletableFuture<long[]> {
    final Query query;
    final Connection connection;
    /** How long the node may be silent, how often it had failed before, and when the request was made, then sent. */
    final long share;

    final int failures;
    volatile long since = Pool.now();

    private final long[] values;
    private int lines;

    Request(Query query, Connection connection, long share) {
        this.query = query;
        this.connection = connection;
        this.share = share;
        failures = connection.node.failures;
        values = new long[query.lines() * query.perLine()];
    }

    /** Takes a line of the reply, and reports whether it is the last one. */
    boolean take(String line) throws IOException {
        boolean refused = lines == 0 && FlakedException.isRefusal(line);
        if (refused) {
            String text = new String(line.substring(1).getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8);
            completeExceptionally(new RefusedException(connection.node.address.text(), text));
        } else if (!query.accept(line, values, lines * query.perLine())) {
            throw Connection.notFlaked(line);
        } else if (++lines == query.lines()) {
            complete(values);
        }
        return refused || lines == query.lines();
    }
}
