package io.github.flaked.client;

import java.lang.reflect.Proxy;
import java.util.List;

/** Learns of copies of the process: CRaC restores a checkpoint, and SnapStart of AWS Lambda many clones of one. */
final class Checkpoint {
    private static final List<String> APIS = List.of("org.crac", "jdk.crac", "javax.crac");

    private Checkpoint() {}

    /**
     * Runs a task before each checkpoint and after each restore, if the program has CRaC's API.
     *
     * @return what the caller must keep, because CRaC refers to it weakly, or null
     */
    static Object register(Runnable task) {
        ClassLoader loader = Checkpoint.class.getClassLoader();
        for (String api : APIS) {
            try {
                Class<?> resource = Class.forName(api + ".Resource", true, loader);
                Object context = Class.forName(api + ".Core", true, loader)
                        .getMethod("getGlobalContext")
                        .invoke(null);
                Object proxy = Proxy.newProxyInstance(loader, new Class<?>[] {resource}, (self, method, args) -> {
                    switch (method.getName()) {
                        case "equals":
                            return self == args[0];
                        case "hashCode":
                            return System.identityHashCode(self);
                        case "toString":
                            return "a flaked client";
                        default: // beforeCheckpoint, afterRestore
                            task.run();
                            return null;
                    }
                });
                Class.forName(api + ".Context", true, loader)
                        .getMethod("register", resource)
                        .invoke(context, proxy);
                return proxy;
            } catch (ReflectiveOperationException | LinkageError e) {
                // The program does not have this one.
            }
        }
        return null;
    }
}
