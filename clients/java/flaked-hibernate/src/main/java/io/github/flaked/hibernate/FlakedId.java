package io.github.flaked.hibernate;

import static java.lang.annotation.ElementType.FIELD;
import static java.lang.annotation.ElementType.METHOD;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.hibernate.annotations.IdGeneratorType;

/**
 * Says that flaked nodes give the values of this {@code @Id}, which is a long, Long or String.
 *
 * <p>The client is the object of the setting {@code flaked.client}, else the bean of Spring, else one that is made from
 * the settings {@code flaked.addresses} (separated by commas), {@code flaked.token}, {@code flaked.timeout} (500ms or
 * 5s), {@code flaked.node-timeout}, {@code flaked.prefetch} and {@code flaked.max-age}. That one is closed with the
 * session factory. A {@code flaked.prefetch} of 1000, for example, avoids a request for each row.
 */
@IdGeneratorType(FlakedIdGenerator.class)
@Retention(RetentionPolicy.RUNTIME)
@Target({FIELD, METHOD})
public @interface FlakedId {
    /**
     * Names a sequence whose values are the IDs.
     *
     * @return the name, "" for snowflake IDs
     */
    String sequence() default "";

    /**
     * Names the client, if the program has several, for example of two clusters.
     *
     * @return the name of the bean, or what follows {@code flaked.client.} in a setting of Hibernate. "" for the only
     *     client, or Spring's primary one
     */
    String client() default "";

    /**
     * Says how many values of the sequence are requested in advance. Do not prefetch from a strict or ordered sequence.
     *
     * @return 0 to 100,000. For snowflake IDs, the client's own setting counts
     */
    int prefetch() default 0;
}
