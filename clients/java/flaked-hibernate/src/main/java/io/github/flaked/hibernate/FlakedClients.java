package io.github.flaked.hibernate;

import io.github.flaked.client.FlakedClient;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Consumer;
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
 * The service of Hibernate that has the client of a session factory. Its settings are {@code flaked.client} (a
 * {@link FlakedClient}), or {@code flaked.addresses} (separated by commas), {@code flaked.token},
 * {@code flaked.timeout}, {@code flaked.node-timeout}, {@code flaked.prefetch} and {@code flaked.max-age}. A time is
 * 500ms or 5s. A client of {@code flaked.addresses} is closed with the session factory.
 */
final class FlakedClients implements Service, Stoppable {
    private static final long serialVersionUID = 1;

    private final transient FlakedClient client;
    private final boolean own;

    private FlakedClients(FlakedClient client, boolean own) {
        this.client = client;
        this.own = own;
    }

    FlakedClient client() {
        return client;
    }

    @Override
    public void stop() {
        if (own) {
            client.close();
        }
    }

    private static FlakedClients of(Map<String, Object> settings, BeanContainer beans) {
        if (settings.get("flaked.client") instanceof FlakedClient given) {
            return new FlakedClients(given, false);
        }
        if (settings.containsKey("flaked.addresses")) {
            return new FlakedClients(build(settings), true);
        }
        if (beans == null) {
            throw missing();
        }
        return new FlakedClients(
                beans.getBean(FlakedClient.class, new ExistingBean(), new NoOtherBean())
                        .getBeanInstance(),
                false);
    }

    private static HibernateException missing() {
        return new HibernateException(
                "@FlakedId has no client. Set flaked.addresses, or add flaked-spring-boot-starter");
    }

    private static FlakedClient build(Map<String, Object> settings) {
        FlakedClient.Builder builder = FlakedClient.builder();
        apply(
                settings,
                "addresses",
                text -> builder.addresses(
                        Arrays.stream(text.split(",")).map(String::strip).toList()));
        apply(settings, "token", builder::token);
        apply(settings, "timeout", text -> builder.timeout(time(text)));
        apply(settings, "node-timeout", text -> builder.nodeTimeout(time(text)));
        apply(settings, "prefetch", text -> builder.prefetch(Integer.parseInt(text)));
        apply(settings, "max-age", text -> builder.maxAge(time(text)));
        return builder.build();
    }

    private static void apply(Map<String, Object> settings, String name, Consumer<String> setter) {
        Object value = settings.get("flaked." + name);
        if (value == null) {
            return;
        }
        try {
            setter.accept(value.toString().strip());
        } catch (RuntimeException e) {
            throw new HibernateException("the setting flaked." + name + " is wrong: " + e.getMessage(), e);
        }
    }

    private static Duration time(String text) {
        if (text.endsWith("ms")) {
            return Duration.ofMillis(Long.parseLong(text.substring(0, text.length() - 2)));
        }
        return Duration.parse("PT" + text);
    }

    /** Asks the container for the bean that it has, not for a new one. */
    private static final class ExistingBean implements BeanContainer.LifecycleOptions {
        @Override
        public boolean canUseCachedReferences() {
            return false;
        }

        @Override
        public boolean useJpaCompliantCreation() {
            return false;
        }
    }

    /** Is asked if the container has no client. */
    private static final class NoOtherBean implements BeanInstanceProducer {
        @Override
        public <B> B produceBeanInstance(Class<B> type) {
            throw missing();
        }

        @Override
        public <B> B produceBeanInstance(String name, Class<B> type) {
            throw missing();
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
            return of(settings, registry.getService(ManagedBeanRegistry.class).getBeanContainer());
        }
    }
}
