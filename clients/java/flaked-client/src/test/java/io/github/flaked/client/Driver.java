package io.github.flaked.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Calls the client for the tests of internal/check/clients. Its driver/main.go describes the commands. */
final class Driver {
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Map<String, Opened> clients = new ConcurrentHashMap<>();
    private final Map<Long, Load> loads = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    /** A client, and its sequences, each of which has prefetched values of its own. */
    private record Opened(FlakedClient client, int prefetch, Duration maxAge, Map<String, Sequence> sequences) {
        Sequence sequence(Map<?, ?> command, Object timeout) {
            String name = (String) command.get("name");
            Sequence sequence = sequences.computeIfAbsent(
                    name, key -> prefetch == 0 ? client.sequence(name) : client.sequence(name, prefetch, maxAge));
            return timeout == null ? sequence : sequence.withTimeout(ms(timeout));
        }
    }

    /** A load that runs. */
    private record Load(List<Thread> callers, AtomicLong keys) {}

    public static void main(String[] args) throws IOException {
        Driver driver = new Driver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            Map<?, ?> command = (Map<?, ?>) Json.parse(line);
            driver.threads.execute(() -> driver.run(command));
        }
    }

    private void run(Map<?, ?> command) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", command.get("id"));
        try {
            switch ((String) command.get("op")) {
                case "open" -> clients.put((String) command.get("client"), open((Map<?, ?>) command.get("options")));
                case "close" -> opened(command).client().close();
                case "load" -> startLoad(command);
                case "stop" -> stopLoad((Long) command.get("load"));
                default -> answer.put("values", call(opened(command), command, command.get("timeout_ms"), "0"));
            }
        } catch (Exception e) {
            answer.put("error", describe(e));
        }
        write(answer);
    }

    private Opened opened(Map<?, ?> command) {
        return clients.get((String) command.get("client"));
    }

    private void write(Map<String, Object> line) {
        synchronized (out) {
            out.println(Json.write(line));
            out.flush();
        }
    }

    private static Opened open(Map<?, ?> options) throws IOException, GeneralSecurityException {
        FlakedClient.Builder b = FlakedClient.builder();
        b.addresses(((List<?>) options.get("addresses"))
                .stream().map(String.class::cast).toList());
        int prefetch = 0;
        Duration maxAge = Duration.ofSeconds(1);
        for (Map.Entry<?, ?> option : options.entrySet()) {
            Object value = option.getValue();
            switch ((String) option.getKey()) {
                case "addresses" -> {}
                case "cluster" -> b.cluster((String) value);
                case "token" -> b.token((String) value);
                case "tls_ca" -> b.tls(trusting(Path.of((String) value)));
                case "node_timeout_ms" -> b.nodeTimeout(ms(value));
                case "timeout_ms" -> b.timeout(ms(value));
                case "prefetch" -> b.prefetch(prefetch = Math.toIntExact((Long) value));
                case "max_age_ms" -> b.maxAge(maxAge = ms(value));
                default -> throw new IllegalStateException("unknown option " + option.getKey());
            }
        }
        return new Opened(b.build(), prefetch, maxAge, new ConcurrentHashMap<>());
    }

    private static Duration ms(Object value) {
        return Duration.ofMillis(((Number) value).longValue());
    }

    private static SSLContext trusting(Path ca) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream in = Files.newInputStream(ca)) {
            Certificate certificate = CertificateFactory.getInstance("X.509").generateCertificate(in);
            store.setCertificateEntry("ca", certificate);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static List<String> call(Opened opened, Map<?, ?> command, Object timeout, String number) {
        FlakedClient client =
                timeout == null ? opened.client() : opened.client().withTimeout(ms(timeout));
        int n = command.get("n") == null ? 0 : (int) Math.min((Long) command.get("n"), Integer.MAX_VALUE);
        boolean one = command.get("n") == null;
        return switch ((String) command.get("op")) {
            case "next" -> strings(client.next());
            case "take" -> strings(client.next(n));
            case "seq_next" -> {
                Sequence sequence = opened.sequence(command, timeout);
                yield one ? strings(sequence.next()) : strings(sequence.next(n));
            }
            case "seq_range" -> {
                Range range = opened.sequence(command, timeout).range(n);
                yield strings(range.first(), range.last());
            }
            case "seq_key" ->
                strings(opened.sequence(command, timeout).next(((String) command.get("key")).replace("*", number)));
            default -> throw new IllegalStateException("unknown op " + command.get("op"));
        };
    }

    private static List<String> strings(long... values) {
        return Arrays.stream(values).mapToObj(Long::toString).toList();
    }

    private static Map<String, Object> describe(Exception e) {
        Map<String, Object> error = new LinkedHashMap<>();
        String kind = e.getClass().getName();
        if (e instanceof RefusedException) {
            kind = "refused";
        } else if (e instanceof UnavailableException) {
            kind = "unavailable";
        } else if (e instanceof ClosedException) {
            kind = "closed";
        } else if (e instanceof IllegalArgumentException) {
            kind = "argument";
        } else {
            e.printStackTrace();
        }
        error.put("kind", kind);
        if (e instanceof FlakedException failure) {
            error.put("code", failure.code());
            error.put("reason", failure.reason());
            error.put("retry_after_ms", failure.retryAfter().toMillis());
        }
        error.put("text", String.valueOf(e.getMessage()));
        return error;
    }

    private void startLoad(Map<?, ?> command) {
        Load load = new Load(new ArrayList<>(), new AtomicLong());
        for (long i = 0; i < (Long) command.get("callers"); i++) {
            load.callers().add(new Thread(() -> callInTurn(command, load)));
        }
        loads.put((Long) command.get("id"), load);
        load.callers().forEach(thread -> thread.setDaemon(true));
        load.callers().forEach(Thread::start);
    }

    private void callInTurn(Map<?, ?> command, Load load) {
        List<?> calls = (List<?>) command.get("calls");
        for (int i = 0; loads.containsKey((Long) command.get("id")); i++) {
            Map<?, ?> call = (Map<?, ?>) calls.get(i % calls.size());
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("load", command.get("id"));
            line.put("op", call.get("op"));
            if (call.get("name") != null) {
                line.put("name", call.get("name"));
            }
            long began = System.nanoTime();
            try {
                String number = String.valueOf(load.keys().incrementAndGet());
                line.put("values", call(opened(command), call, command.get("timeout_ms"), number));
            } catch (Exception e) {
                line.put("error", describe(e));
            }
            line.put("took_ms", (System.nanoTime() - began) / 1e6);
            write(line);
            try {
                Thread.sleep(ms(command.get("pause_ms") == null ? 0L : command.get("pause_ms"))
                        .toMillis());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void stopLoad(Long id) throws InterruptedException {
        for (Thread caller : loads.remove(id).callers()) {
            caller.join();
        }
    }
}
