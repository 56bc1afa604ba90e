/**
 * Gets 64-bit IDs, and values of named sequences, from flaked nodes.
 *
 * <p>Begin with {@link io.github.flaked.client.FlakedClient#builder()}.
 */
package io.github.flaked.client;
