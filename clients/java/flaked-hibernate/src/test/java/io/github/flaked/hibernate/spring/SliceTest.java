package io.github.flaked.hibernate.spring;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.flaked.client.FlakedClient;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.autoconfigure.orm.jpa.DataJpaTest;

/** A test of a Spring Boot application that starts JPA only. */
@DataJpaTest(properties = "flaked.addresses=ids-1")
class SliceTest {
    @Autowired
    FlakedClient client;

    @Test
    void theClientHasItsProperties() {
        assertTrue(client.stats().nodes().get(0).address().startsWith("ids-1"));
    }
}
