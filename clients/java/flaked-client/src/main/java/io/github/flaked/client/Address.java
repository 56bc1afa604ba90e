package io.github.flaked.client;

import java.nio.charset.StandardCharsets;

/**
 * The address of a node.
 *
 * @param text the address as it was given
 * @param host the host, null for a unix socket
 * @param port the port, 0 for a unix socket
 * @param path the path of a unix socket, null for TCP
 */
record Address(String text, String host, int port, String path) {
    static final int DEFAULT_PORT = 7609;
    private static final int MAX_PATH = 107;

    static Address parse(String text) {
        if (text == null) {
            throw new IllegalArgumentException("an address is null");
        }
        if (text.startsWith("unix:")) {
            String path = text.substring("unix:".length());
            if (!path.startsWith("/") || path.getBytes(StandardCharsets.UTF_8).length > MAX_PATH) {
                throw wrong(text, "the path of a unix socket must begin with / and have at most 107 bytes");
            }
            return new Address(text, null, 0, path);
        }
        int colon = text.lastIndexOf(':');
        boolean bracketed = text.startsWith("[");
        boolean bareIPv6 = !bracketed && text.indexOf(':') != colon;
        boolean hasPort = !bareIPv6 && colon > text.lastIndexOf(']');
        String host = hasPort ? text.substring(0, colon) : text;
        if (bracketed) {
            if (!host.endsWith("]")) {
                throw wrong(text, "the bracket [ is not closed");
            }
            host = host.substring(1, host.length() - 1);
        }
        boolean legal = bracketed || bareIPv6
                ? host.matches("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?")
                : host.matches("[^\\s\\p{Cntrl}/:\\[\\]%]+") && !(host.matches("[0-9]+") && !hasPort);
        if (!legal) {
            throw wrong(text, "write host:port, [IPv6]:port or unix:/path");
        }
        return new Address(text, host, hasPort ? port(text, text.substring(colon + 1)) : DEFAULT_PORT, null);
    }

    private static int port(String text, String digits) {
        int port = digits.matches("[0-9]{1,5}") ? Integer.parseInt(digits) : 0;
        if (port < 1 || port > 65_535) {
            throw wrong(text, "the port must be 1 to 65535");
        }
        return port;
    }

    private static IllegalArgumentException wrong(String text, String advice) {
        return new IllegalArgumentException("wrong address \"" + text + "\": " + advice);
    }
}
