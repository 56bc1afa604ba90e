package io.github.flaked.hibernate;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.TextSettings;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import org.hibernate.HibernateException;
import org.hibernate.boot.registry.StandardServiceInitiator;
import org.hibernate.boot.registry.StandardServiceRegistryBuilder;
import org.hibernate.resource.beans.container.spi.BeanContainer;
import org.hibernate.resource.beans.spi.BeanInstanceProducer;
import org.hibernate.resource.beans.spi.ManagedBeanRegistry;
import org.hibernate.service.Service;
import org.hibernate.service.spi.ServiceContributor;
import org.hibernate.service.spi.ServiceRegistryImplementor;
import org.hibernate.service.spi.Stoppable;

/**
 * The service of Hibernate that finds the clients of a session factory: see {@link FlakedId}. It looks for a client
 * when the first ID is made: Spring reads the mapping when it builds a native image, too, and there are no beans then.
 */
final class FlakedClients implements Service, Stoppable {
    private static final long serialVersionUID = 1;

    private final transient Map<String, Object> settings;
    /** The container of beans, or null. */
    private final transient BeanContainer beans;
    /** The clients that were found, by the name of the bean. */
    private final transient Map<String, FlakedClient> found = new HashMap<>();
    /** The client that must be closed with the session factory, or null. */
    private transient FlakedClient own;

    FlakedClients(Map<String, Object> settings, BeanContainer beans) {
        this.settings = settings;
        this.beans = beans;
        if (beans == null && settings.get("flaked.addresses") != null) {
            client(""); // so that a wrong setting ends the start
        }
    }

    /** Returns the client of the bean with this name, or the only client if the name is empty. */
    synchronized FlakedClient client(String name) {
        return found.computeIfAbsent(name, this::find);
    }

    private FlakedClient find(String name) {
        if (settings.get(name.isEmpty() ? "flaked.client" : "flaked.client." + name) instanceof FlakedClient given) {
            return given;
        }
        if (!name.isEmpty()) {
            return bean(name, () -> {
                throw new HibernateException(
                        "@FlakedId(client = \"" + name + "\"): there is no FlakedClient of that name. "
                                + (names().isEmpty()
                                        ? "Add one as a bean, or set flaked.client." + name + " to one"
                                        : "There are " + names()));
            });
        }
        return beans == null ? make() : bean(name, this::make);
    }

    /** Returns the bean, or what otherwise returns if the container has none. */
    private FlakedClient bean(String name, Source otherwise) {
        if (beans == null) {
            return otherwise.get();
        }
        var options = new Options(false);
        var producer = new Producer(otherwise);
        return (name.isEmpty()
                        ? beans.getBean(FlakedClient.class, options, producer)
                        : beans.getBean(name, FlakedClient.class, options, producer))
                .getBeanInstance();
    }

    /** Makes a client from the settings. Spring's container comes here, too, if it has several clients. */
    private FlakedClient make() {
        if (names().size() > 1) {
            throw new HibernateException("@FlakedId has several clients to choose from: " + names()
                    + ". Name one, such as @FlakedId(client = \"" + names().first()
                    + "\"), or make one of them @Primary");
        }
        if (settings.get("flaked.addresses") == null) {
            throw new HibernateException(
                    "@FlakedId has no client. Set flaked.addresses, or add a FlakedClient as a bean. In a test "
                            + "slice such as @DataJpaTest, @Import the class that makes the bean");
        }
        try {
            own = TextSettings.builder(name -> Objects.toString(settings.get("flaked." + name), null))
                    .build();
            return own;
        } catch (IllegalArgumentException e) {
            throw new HibernateException("wrong setting flaked." + e.getMessage(), e);
        }
    }

    /** Returns the names of all beans that are clients. */
    private TreeSet<String> names() {
        if (beans == null) {
            return new TreeSet<>();
        }
        Source none = () -> null;
        var all = beans.getBean(AllClients.class, new Options(true), new Producer(none))
                .getBeanInstance();
        return all == null ? new TreeSet<>() : new TreeSet<>(all.clients.keySet());
    }

    @Override
    public synchronized void stop() {
        if (own != null) {
            own.close();
        }
    }

    /** What the container calls if it has no such bean. */
    private interface Source {
        FlakedClient get();
    }

    private record Producer(Source source) implements BeanInstanceProducer {
        @Override
        public <B> B produceBeanInstance(Class<B> type) {
            return type.cast(source.get());
        }

        @Override
        public <B> B produceBeanInstance(String name, Class<B> type) {
            return produceBeanInstance(type);
        }
    }

    /** Whether the container makes a new bean, and not gives the one that it has. */
    private record Options(boolean makesNew) implements BeanContainer.LifecycleOptions {
        @Override
        public boolean canUseCachedReferences() {
            return false;
        }

        @Override
        public boolean useJpaCompliantCreation() {
            return makesNew;
        }
    }

    /** The container makes one, with all its clients by the names of their beans. */
    static final class AllClients {
        private final Map<String, FlakedClient> clients;

        AllClients(Map<String, FlakedClient> clients) {
            this.clients = clients;
        }
    }

    /** Adds the service to Hibernate. META-INF/services names this class. */
    public static final class Contributor implements ServiceContributor, StandardServiceInitiator<FlakedClients> {
        /** Makes a contributor. */
        public Contributor() {}

        @Override
        public void contribute(StandardServiceRegistryBuilder builder) {
            builder.addInitiator(this);
        }

        @Override
        public Class<FlakedClients> getServiceInitiated() {
            return FlakedClients.class;
        }

        @Override
        public FlakedClients initiateService(Map<String, Object> settings, ServiceRegistryImplementor registry) {
            return new FlakedClients(
                    settings, registry.getService(ManagedBeanRegistry.class).getBeanContainer());
        }
    }
}
