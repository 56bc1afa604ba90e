package io.github.flaked.client;

import javax.net.ssl.SSLContext;

/** Settings of the connections. The token and tls may be null; nodeTimeout is in nanoseconds. */
record Config(String token, SSLContext tls, long nodeTimeout) {}
