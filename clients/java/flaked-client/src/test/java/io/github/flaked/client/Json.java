package io.github.flaked.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as the driver needs: objects, arrays, strings, numbers, true and false. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Returns a Map, List, String, Long, Double or Boolean. */
    static Object parse(String text) {
        return new Json(text).value();
    }

    private Object value() {
        skipBlanks();
        switch (text.charAt(at)) {
            case '{' -> {
                Map<String, Object> map = new LinkedHashMap<>();
                each('}', () -> {
                    String key = string();
                    skipBlanks();
                    at++; // the colon
                    map.put(key, value());
                });
                return map;
            }
            case '[' -> {
                List<Object> list = new ArrayList<>();
                each(']', () -> list.add(value()));
                return list;
            }
            case '"' -> {
                return string();
            }
            default -> {
                return word();
            }
        }
    }

    private void each(char end, Runnable element) {
        at++;
        for (skipBlanks(); text.charAt(at) != end; skipBlanks()) {
            if (text.charAt(at) == ',') {
                at++;
                skipBlanks();
            }
            element.run();
        }
        at++;
    }

    private Object word() {
        int from = at;
        while (at < text.length() && ",]} \t".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        return switch (word) {
            case "true", "false" -> Boolean.valueOf(word);
            default -> word.matches("-?[0-9]+") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
        };
    }

    private String string() {
        StringBuilder s = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\') {
                c = text.charAt(++at);
                int plain = "bfnrt".indexOf(c);
                if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                } else if (plain >= 0) {
                    c = "\b\f\n\r\t".charAt(plain);
                }
            }
            s.append(c);
        }
        at++;
        return s.toString();
    }

    private void skipBlanks() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            List<String> fields = new ArrayList<>();
            map.forEach((k, v) -> fields.add(write(k) + ":" + write(v)));
            return "{" + String.join(",", fields) + "}";
        }
        if (value instanceof List<?> list) {
            return "[" + String.join(",", list.stream().map(Json::write).toList()) + "]";
        }
        return value instanceof String s ? quote(s) : String.valueOf(value);
    }

    private static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
