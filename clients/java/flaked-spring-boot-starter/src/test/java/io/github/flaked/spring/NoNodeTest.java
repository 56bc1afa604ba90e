package io.github.flaked.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.flaked.client.FlakedClient;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.mockito.Mockito;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** What needs no node: an application's start, and the files of the jar. */
class NoNodeTest {
    @Test
    void blankClusterAndTokenAreNotSet() {
        try (var context = ApplicationTest.run("flaked.cluster=", "flaked.token= ")) {
            assertNotNull(context.getBean(FlakedClient.class));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class MockedClient {
        @Bean
        FlakedClient mockedClient() {
            return Mockito.mock(FlakedClient.class);
        }
    }

    @Test
    void aMockedClientHasNoMetrics() {
        try (var context = ApplicationTest.run(MockedClient.class)) {
            assertNull(context.getBean(MeterRegistry.class)
                    .find("flaked.client.calls")
                    .functionCounter());
        }
    }

    @Test
    void jpaSlicesOfBoot3And4HaveTheClient() throws IOException {
        for (String slice : List.of("test.autoconfigure.orm.jpa", "data.jpa.test.autoconfigure")) {
            String file = "META-INF/spring/org.springframework.boot." + slice + ".AutoConfigureDataJpa.imports";
            try (var imports = getClass().getClassLoader().getResourceAsStream(file)) {
                assertNotNull(imports, file);
                String text = new String(imports.readAllBytes(), StandardCharsets.UTF_8);
                assertEquals(FlakedAutoConfiguration.class.getName(), text.strip());
            }
        }
    }
}
