package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.github.flaked.client.FlakedClient;

/**
 * Gives the values of {@code @TableId(type = IdType.ASSIGN_ID)} from flaked nodes. Without Spring Boot:
 * {@code GlobalConfigUtils.getGlobalConfig(configuration).setIdentifierGenerator(generator)}.
 */
public final class FlakedIdentifierGenerator implements IdentifierGenerator {
    private final FlakedClient client;

    /**
     * Makes a generator.
     *
     * @param client the client, which the caller closes
     */
    public FlakedIdentifierGenerator(FlakedClient client) {
        this.client = client;
    }

    @Override
    public Long nextId(Object entity) {
        return client.next();
    }
}
