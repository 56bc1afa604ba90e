/** Gets 64-bit IDs, and values of named sequences, from flaked nodes. Begin with {@link FlakedClient#builder()}. */
package io.github.flaked.client;
