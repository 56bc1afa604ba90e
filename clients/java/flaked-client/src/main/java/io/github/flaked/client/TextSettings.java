package io.github.flaked.client;

import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** Reads a client's settings from texts, as the configuration of a framework has them. */
public final class TextSettings {
    private TextSettings() {}

    /**
     * {@return a builder with the settings addresses (separated by commas), cluster, token, timeout, node-timeout, prefetch and
     * max-age} A time is 500ms or 5s. The message of an IllegalArgumentException begins with the setting's name.
     *
     * @param text returns the text of a setting, null for the default. So is a blank one, but not of addresses
     */
    public static FlakedClient.Builder builder(UnaryOperator<String> text) {
        FlakedClient.Builder builder = FlakedClient.builder();
        set(text, "addresses", list -> builder.addresses(list.split("\\s*,\\s*")));
        set(text, "cluster", builder::cluster);
        set(text, "token", builder::token);
        set(text, "timeout", time -> builder.timeout(time(time)));
        set(text, "node-timeout", time -> builder.nodeTimeout(time(time)));
        set(text, "prefetch", number -> builder.prefetch(Integer.parseInt(number)));
        set(text, "max-age", time -> builder.maxAge(time(time)));
        return builder;
    }

    private static void set(UnaryOperator<String> text, String name, Consumer<String> setter) {
        try {
            Optional.ofNullable(text.apply(name))
                    .map(String::strip)
                    .filter(value -> !value.isEmpty() || name.equals("addresses"))
                    .ifPresent(setter);
        } catch (RuntimeException e) {
            throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
        }
    }

    private static Duration time(String text) {
        return Duration.parse("PT" + text.replace("ms", "s")).dividedBy(text.endsWith("ms") ? 1000 : 1);
    }
}
