package io.github.flaked.spring;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.StringUtils;

/**
 * The properties flaked.*.
 *
 * @param addresses nodes of one cluster, the preferred one first: host:port, host (port 7609) or unix:/path
 * @param cluster name or UUID of the cluster. Without it, it is that of the first node that answers
 * @param token token that is sent to each node
 * @param timeout how long a call may take, over all nodes
 * @param nodeTimeout how long one node may be silent before the next one is asked
 * @param prefetch how many IDs are requested in advance, 0 to 100000
 * @param maxAge how long a prefetched ID may be kept
 * @param sslBundle name of the SSL bundle (spring.ssl.bundle.*) for TLS to TCP addresses. Without it, TCP is plain
 */
@ConfigurationProperties("flaked")
public record FlakedProperties(
        @DefaultValue("127.0.0.1:7609") List<String> addresses,
        String cluster,
        String token,
        @DefaultValue("5s") Duration timeout,
        @DefaultValue("1s") Duration nodeTimeout,
        @DefaultValue("0") int prefetch,
        @DefaultValue("1s") Duration maxAge,
        String sslBundle) {
    /** Takes the properties. A blank cluster or token, as that of ${FLAKED_TOKEN:}, counts as not set. */
    public FlakedProperties {
        cluster = StringUtils.hasText(cluster) ? cluster : null;
        token = StringUtils.hasText(token) ? token : null;
    }
}
