package io.github.flaked.client;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The address of a node, as it was given and in parts. The path is that of a unix socket, and null for TCP. */
record Address(String text, String host, int port, String path) {
    private static final String IPV6 = "[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?";
    private static final String NAME = "(?![0-9]+$)[^\\s\\p{Cntrl}/:\\[\\]%]+";
    private static final Pattern FORM = Pattern.compile(
            "unix:(/.*)|(\\[" + IPV6 + "]|" + NAME + ")(?::([0-9]{1,5}))?|(" + IPV6 + ")", Pattern.DOTALL);

    static Address parse(String text) {
        Matcher parts = FORM.matcher(String.valueOf(text));
        boolean legal = text != null && parts.matches();
        String path = legal ? parts.group(1) : null;
        int port = legal && parts.group(3) != null ? Integer.parseInt(parts.group(3)) : 7609;
        legal &= port >= 1 && port <= 65_535 && (path == null || path.getBytes(StandardCharsets.UTF_8).length <= 107);
        Check.require(legal, "wrong address \"" + text + "\": write host:port, [IPv6]:port or unix:/path");
        String host = parts.group(4) == null ? parts.group(2) : parts.group(4);
        return new Address(text, host == null ? null : host.replaceAll("[\\[\\]]", ""), port, path);
    }
}
