package io.github.flaked.hibernate;

import io.github.flaked.client.FlakedClient;
import io.github.flaked.client.TextSettings;
import java.util.Map;
import java.util.Objects;
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

/** The service of Hibernate that has the client of a session factory: see {@link FlakedId}. */
final class FlakedClients implements Service, Stoppable, BeanInstanceProducer, BeanContainer.LifecycleOptions {
    private static final long serialVersionUID = 1;

    private final transient Map<String, Object> settings;
    private final transient FlakedClient client;
    /** The client that must be closed with the session factory, or null. */
    private transient FlakedClient own;

    FlakedClients(Map<String, Object> settings, BeanContainer beans) {
        this.settings = settings;
        if (settings.get("flaked.client") instanceof FlakedClient given) {
            client = given;
        } else {
            client = beans == null
                    ? produceBeanInstance(FlakedClient.class)
                    : beans.getBean(FlakedClient.class, this, this).getBeanInstance();
        }
    }

    FlakedClient client() {
        return client;
    }

    @Override
    public void stop() {
        if (own != null) {
            own.close();
        }
    }

    // The container calls this if it has no client.
    @Override
    public <B> B produceBeanInstance(Class<B> type) {
        if (settings.get("flaked.addresses") == null) {
            throw new HibernateException(
                    "@FlakedId has no client. Set flaked.addresses, or add a FlakedClient as a bean");
        }
        try {
            own = TextSettings.builder(name -> Objects.toString(settings.get("flaked." + name), null))
                    .build();
            return type.cast(own);
        } catch (IllegalArgumentException e) {
            throw new HibernateException("wrong setting flaked." + e.getMessage(), e);
        }
    }

    @Override
    public <B> B produceBeanInstance(String name, Class<B> type) {
        return produceBeanInstance(type);
    }

    @Override
    public boolean canUseCachedReferences() {
        return false;
    }

    // The container gives the bean that it has, not a new one.
    @Override
    public boolean useJpaCompliantCreation() {
        return false;
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
