package io.github.flaked.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.github.flaked.client.FlakedClient;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What needs no node: an application's start, and the files of the jar. */
class NoNodeTest {
    @Test
    void blankClusterAndTokenAreNotSet() {
        try (var context = ApplicationTest.run("flaked.cluster=", "flaked.token= ")) {
            assertNotNull(context.getBean(FlakedClient.class));
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
