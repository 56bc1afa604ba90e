package io.github.flaked.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TextSettingsTest {
    @Test
    void listOfAddressesMayHaveBlanks() {
        try (FlakedClient client = TextSettings.builder(Map.of("addresses", " 127.0.0.1:1 , 127.0.0.1:2 ")::get)
                .build()) {
            List<String> addresses =
                    client.stats().nodes().stream().map(Stats.Node::address).toList();
            assertEquals(List.of("127.0.0.1:1", "127.0.0.1:2"), addresses);
        }
    }

    @Test
    void wrongTextIsNamed() {
        Map<String, List<String>> wrong = Map.of(
                "addresses", List.of("", "ids:port"),
                "cluster", List.of("two words"),
                "token", List.of("two words"),
                "timeout", List.of("soon", "5", "0s", "ms", "0.5ms"),
                "node-timeout", List.of("-1s"),
                "prefetch", List.of("many", "-1"),
                "max-age", List.of("0ms"));
        wrong.forEach((name, texts) -> texts.forEach(text -> {
            var e = assertThrows(
                    IllegalArgumentException.class,
                    () -> TextSettings.builder(Map.of(name, text)::get),
                    name + " " + text);
            assertTrue(e.getMessage().startsWith(name + ": "), e.getMessage());
        }));
    }

    @Test
    void blankTextIsNotSet() {
        for (String name : List.of("cluster", "token", "timeout", "prefetch")) {
            TextSettings.builder(Map.of(name, " ")::get);
        }
    }

    @Test
    void timeIsInSecondsOrMilliseconds() {
        for (String text : List.of("1ms", "500ms", "5s", "0.5s")) {
            TextSettings.builder(Map.of("timeout", text)::get);
        }
    }
}
