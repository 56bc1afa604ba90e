package io.github.flaked.hibernate;

import io.github.flaked.client.FlakedException;
import io.github.flaked.client.Sequence;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.function.LongSupplier;
import org.hibernate.MappingException;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.AnnotationBasedGenerator;
import org.hibernate.generator.GeneratorCreationContext;
import org.hibernate.id.IdentifierGenerationException;
import org.hibernate.id.IdentifierGenerator;

/** Generates the values of {@link FlakedId}. Hibernate makes one for each entity. */
public class FlakedIdGenerator implements IdentifierGenerator, AnnotationBasedGenerator<FlakedId> {
    private static final long serialVersionUID = 1;
    private static final Duration MAX_AGE = Duration.ofSeconds(1);

    private transient FlakedClients clients;
    private transient FlakedId annotation;
    /** Gives the next value, or null before the first one. */
    private transient volatile LongSupplier values;
    /** True for an ID in a field of type String. */
    private boolean asString;

    /** Makes a generator. Hibernate initializes it. */
    public FlakedIdGenerator() {}

    @Override
    public void initialize(FlakedId annotation, Member member, GeneratorCreationContext context) {
        Class<?> type = member instanceof Method method ? method.getReturnType() : ((Field) member).getType();
        asString = type == String.class;
        // A generic superclass may say Object, Serializable or Number.
        if (!asString && type != long.class && !type.isAssignableFrom(Long.class)) {
            throw new MappingException(
                    "@FlakedId on " + member.getDeclaringClass().getName() + "." + member.getName()
                            + ": an ID does not fit into " + type.getSimpleName() + ". Use long, Long or String");
        }
        this.annotation = annotation;
        clients = context.getServiceRegistry().getService(FlakedClients.class);
    }

    private synchronized LongSupplier find() {
        if (values == null) {
            var client = clients.client(annotation.client());
            if (annotation.sequence().isEmpty()) {
                values = client::next;
            } else {
                Sequence sequence = client.sequence(annotation.sequence(), annotation.prefetch(), MAX_AGE);
                values = sequence::next;
            }
        }
        return values;
    }

    @Override
    public Object generate(SharedSessionContractImplementor session, Object entity) {
        LongSupplier values = this.values == null ? find() : this.values;
        try {
            long id = values.getAsLong();
            return asString ? (Object) Long.toString(id) : (Object) id;
        } catch (FlakedException e) {
            throw new IdentifierGenerationException("no ID from flaked: " + e.getMessage(), e);
        }
    }
}
