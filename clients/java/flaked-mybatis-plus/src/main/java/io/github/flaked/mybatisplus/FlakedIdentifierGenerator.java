package io.github.flaked.mybatisplus;

import com.baomidou.mybatisplus.annotation.IdType;
import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import com.baomidou.mybatisplus.core.metadata.TableInfo;
import com.baomidou.mybatisplus.core.metadata.TableInfoHelper;
import com.baomidou.mybatisplus.core.toolkit.GlobalConfigUtils;
import io.github.flaked.client.FlakedClient;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Set;

/**
 * Gives the values of {@code @TableId(type = IdType.ASSIGN_ID)} from flaked nodes. Without Spring Boot:
 * {@code GlobalConfigUtils.getGlobalConfig(configuration).setIdentifierGenerator(generator)}.
 */
public final class FlakedIdentifierGenerator implements IdentifierGenerator {
    /** The types of a key that hold each ID. MyBatis-Plus cuts an ID for others, without a word. */
    private static final Set<Class<?>> HOLD_AN_ID = Set.of(
            long.class, Long.class, String.class, BigInteger.class, BigDecimal.class, Object.class, Number.class);

    private final FlakedClient client;

    /**
     * Makes a generator.
     *
     * @param client the client, which the caller closes
     */
    public FlakedIdentifierGenerator(FlakedClient client) {
        this.client = client;
    }

    /**
     * Returns a new ID.
     *
     * @throws IllegalStateException if the key of the entity does not hold an ID
     */
    @Override
    public Long nextId(Object entity) {
        TableInfo table = entity == null ? null : TableInfoHelper.getTableInfo(entity.getClass());
        if (table != null) {
            check(table);
        }
        return client.next();
    }

    /**
     * Checks the keys of all entities that MyBatis-Plus knows so far and gives IDs of this generator.
     *
     * @throws IllegalStateException if a key does not hold an ID
     */
    @SuppressWarnings("deprecation") // nothing else says whose a table is
    public void checkKeys() {
        for (TableInfo table : TableInfoHelper.getTableInfos()) {
            var config = GlobalConfigUtils.getGlobalConfig(table.getConfiguration());
            if (table.getIdType() == IdType.ASSIGN_ID && config.getIdentifierGenerator() == this) {
                check(table);
            }
        }
    }

    private static void check(TableInfo table) {
        Class<?> type = table.getKeyType();
        if (type != null && !HOLD_AN_ID.contains(type)) {
            throw new IllegalStateException(
                    "@TableId on " + table.getEntityType().getName() + "." + table.getKeyProperty()
                            + ": an ID of 63 bits does not fit into " + type.getSimpleName() + ". Use Long or String");
        }
    }
}
