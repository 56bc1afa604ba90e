package io.github.flaked.shardingsphere;

import org.apache.shardingsphere.infra.metadata.database.ShardingSphereDatabase;
import org.apache.shardingsphere.mode.manager.ContextManager;
import org.apache.shardingsphere.mode.manager.listener.ContextManagerLifecycleListener;
import org.apache.shardingsphere.sharding.rule.ShardingRule;

/** Closes the clients of a data source that is closed. ShardingSphere does not close key generators. */
public final class CloseListener implements ContextManagerLifecycleListener {
    /** Makes a listener. META-INF/services names it. */
    public CloseListener() {}

    @Override
    public void onInitialized(ContextManager manager) {}

    @Override
    public void onDestroyed(ContextManager manager) {
        for (ShardingSphereDatabase database :
                manager.getMetaDataContexts().getMetaData().getAllDatabases()) {
            for (ShardingRule rule : database.getRuleMetaData().findRules(ShardingRule.class)) {
                rule.getKeyGenerators().values().stream()
                        .filter(FlakedKeyGenerateAlgorithm.class::isInstance)
                        .map(FlakedKeyGenerateAlgorithm.class::cast)
                        .forEach(FlakedKeyGenerateAlgorithm::close);
            }
        }
    }
}
