package org.crac;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;

/** CRaC's API, with a context whose checkpoints tests make. Like the real one, it does not keep the resources alive. */
public final class Core {
    private static final Global GLOBAL = new Global();

    private Core() {}

    public static Context<Resource> getGlobalContext() {
        return GLOBAL;
    }

    private static final class Global extends Context<Resource> {
        private final Set<Resource> resources =
                Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

        @Override
        public void register(Resource resource) {
            resources.add(resource);
        }

        @Override
        public void beforeCheckpoint(Context<? extends Resource> context) throws Exception {
            for (Resource resource : List.copyOf(resources)) {
                resource.beforeCheckpoint(this);
            }
        }

        @Override
        public void afterRestore(Context<? extends Resource> context) throws Exception {
            for (Resource resource : List.copyOf(resources)) {
                resource.afterRestore(this);
            }
        }
    }
}
