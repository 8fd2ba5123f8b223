import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The contract (sdk/CONTRACT.md) for servers in Java, and for clients in one loop with them.
 *
 * <p>argv -> start(): refusals, "describe" -> the program's run(spec) -> JSON lines on stdout
 */
final class Linerate {
    static final int BACKLOG = 511;
    private static final int CONTRACT = 3;
    private static final int UNSUPPORTED = 127;
    private static final int BAD_SPEC = 2;
    private static final int LONGEST_MESSAGE = 65_536;
    /** The spec's fields and options in the contract. Unknown names are refused. */
    private static final List<String> FIELDS = words(
            "contract role layer workload listen connect sources connections threads operations bytes",
            "duration_ns timeout_ns size path expect rate arrival seed sample_ns request tls options");
    private static final List<String> OPTIONS = words(
            "buffer direction ends interval_us mode mtu nc nodelay resend runtime",
            "search shape transfers tun window");
    private static final Gson GSON = new Gson();

    /** A value of "ends": client and server on one event loop. */
    static final String ONE_LOOP = "one-loop";

    /** The content of "describe". */
    record Program(
            String name,
            String version,
            List<String> roles,
            List<String> layers,
            List<String> workloads,
            List<String> ends) {}

    /** Without a number of operations, or a time, that has no limit. In one loop `listen` is a port of loopback. */
    record Spec(
            String role,
            String layer,
            String workload,
            boolean isOneLoop,
            InetSocketAddress listen,
            int size,
            int connections,
            long operations,
            long durationNs,
            long timeoutNs) {
        boolean isServer() {
            return role.equals("server");
        }

        /** The same for a time. */
        Spec forTime(long ns) {
            return new Spec(
                    role, layer, workload, isOneLoop, listen, size, connections, Long.MAX_VALUE, ns, timeoutNs);
        }
    }

    interface Run {
        void of(Spec spec) throws Exception;
    }

    /** Ends the program with a status. */
    private static final class Refusal extends Exception {
        final int status;

        Refusal(int status, String text) {
            super((status == UNSUPPORTED ? "unsupported: " : "bad spec: ") + text);
            this.status = status;
        }
    }

    /** Runs the program of one spec. */
    static void start(Program program, String[] arguments, Run run) {
        try {
            JsonObject spec = parse(arguments);
            if (text(spec, "role").equals("describe")) {
                JsonObject described = GSON.toJsonTree(program).getAsJsonObject();
                described.addProperty("event", "describe");
                System.out.println(described);
                return;
            }
            boolean isServed = program.roles().contains(text(spec, "role"))
                    && program.layers().contains(text(spec, "layer"))
                    && program.workloads().contains(text(spec, "workload"));
            if (!isServed || (spec.has("threads") && spec.get("threads").getAsInt() > 1)) {
                throw new Refusal(UNSUPPORTED, "%s of layer \"%s\" and workload \"%s\", or several threads"
                        .formatted(text(spec, "role"), text(spec, "layer"), text(spec, "workload")));
            }
            Spec checked = check(spec, program);
            // SIGTERM runs the hook. Java's own status would be 143.
            Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
            run.of(checked);
        } catch (Refusal refusal) {
            System.err.println(program.name() + ": " + refusal.getMessage());
            // Without the hook.
            Runtime.getRuntime().halt(refusal.status);
        } catch (Exception error) {
            System.err.println(program.name() + ": " + error);
            Runtime.getRuntime().halt(1);
        }
    }

    private static Spec check(JsonObject spec, Program program) throws Refusal {
        var options = spec.has("options") ? spec.getAsJsonObject("options") : new JsonObject();
        boolean isOneLoop = options.has("ends");
        String role = text(spec, "role");
        if (isOneLoop && !text(options, "ends").equals(ONE_LOOP)) {
            throw new Refusal(BAD_SPEC, "\"options.ends\" must be " + ONE_LOOP);
        }
        need(!isOneLoop || role.equals("client") && program.ends().contains(ONE_LOOP));
        long operations = number(spec, "operations", Long.MAX_VALUE);
        long duration = number(spec, "duration_ns", Long.MAX_VALUE);
        int size = (int) number(spec, "size", 0);
        boolean hasEnd = Math.min(operations, duration) < Long.MAX_VALUE;
        if (isOneLoop && (size < 1 || size > LONGEST_MESSAGE || !hasEnd)) {
            throw new Refusal(BAD_SPEC, "size, operations or duration is missing or out of range");
        }
        return new Spec(
                role,
                text(spec, "layer"),
                text(spec, "workload"),
                isOneLoop,
                address(role.equals("client") ? "127.0.0.1:0" : text(spec, "listen")),
                size,
                (int) number(spec, "connections", 1),
                operations,
                duration,
                number(spec, "timeout_ns", 10_000_000_000L));
    }

    private static long number(JsonObject spec, String name, long otherwise) {
        return spec.has(name) ? spec.get(name).getAsLong() : otherwise;
    }

    /** Ends a program that has not begun: it does not support its spec. */
    static void need(boolean isSupported) throws Refusal {
        if (!isSupported) {
            throw new Refusal(UNSUPPORTED, "the workload of this layer and role");
        }
    }

    static void ready(InetSocketAddress bound) {
        String ip = bound.getAddress().getHostAddress();
        String host = ip.contains(":") ? "[" + ip + "]" : ip;
        System.out.println(GSON.toJson(Map.of("event", "ready", "address", host + ":" + bound.getPort())));
    }

    private static JsonObject parse(String[] arguments) throws Refusal {
        JsonObject spec;
        try {
            spec = GSON.fromJson(arguments.length == 1 ? arguments[0] : "", JsonObject.class);
        } catch (JsonParseException error) {
            throw new Refusal(BAD_SPEC, "the spec is no JSON object: " + error.getMessage());
        }
        if (spec == null || !spec.has("contract") || spec.get("contract").getAsInt() != CONTRACT) {
            throw new Refusal(BAD_SPEC, "expected one argument, a spec with contract " + CONTRACT);
        }
        checkNames("", spec.keySet(), FIELDS);
        if (spec.has("options")) {
            checkNames("options.", spec.getAsJsonObject("options").keySet(), OPTIONS);
        }
        return spec;
    }

    private static String text(JsonObject spec, String name) throws Refusal {
        if (!spec.has(name)) {
            throw new Refusal(BAD_SPEC, "\"" + name + "\" is missing");
        }
        return spec.get(name).getAsString();
    }

    private static List<String> words(String... lines) {
        return List.of(String.join(" ", lines).split(" "));
    }

    private static void checkNames(String prefix, Collection<String> given, List<String> known)
            throws Refusal {
        for (String name : given) {
            if (!known.contains(name)) {
                String nearest = Collections.min(known, Comparator.comparing(other -> distance(name, other)));
                boolean isNear = distance(name, nearest) <= 1 + name.length() / 3;
                String hint = isNear ? "nearest: \"" + nearest + "\"" : "known: " + String.join(", ", known);
                throw new Refusal(BAD_SPEC, "\"" + prefix + name + "\" is not known; " + hint);
            }
        }
    }

    /** The number of letters to insert, remove or replace. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        Arrays.setAll(row, i -> i);
        for (int at = 0; at < a.length(); at++) {
            int[] above = row.clone();
            row[0] = above[0] + 1;
            for (int i = 1; i <= b.length(); i++) {
                int replaced = above[i - 1] + (a.charAt(at) == b.charAt(i - 1) ? 0 : 1);
                row[i] = Math.min(replaced, Math.min(row[i - 1], above[i]) + 1);
            }
        }
        return row[b.length()];
    }

    /** Of "ip:port" or "[ip]:port". */
    private static InetSocketAddress address(String text) throws Refusal {
        int colon = text.lastIndexOf(':');
        if (colon < 1) {
            throw new Refusal(BAD_SPEC, "\"" + text + "\" is no address");
        }
        String ip = text.substring(0, colon).replaceAll("[\\[\\]]", "");
        return new InetSocketAddress(ip, Integer.parseInt(text.substring(colon + 1)));
    }

    /**
     * The operations of a client whose connections share one thread, and its window: it ends at the end of its
     * time, or with the last of its operations.
     */
    static final class Tally {
        private final OperatingSystemMXBean system =
                ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        private final Map<String, Long> errors = new TreeMap<>();
        private final TreeMap<Long, Long> latency = new TreeMap<>();
        private final long limit;
        private final long start;
        private final long until;
        private final long cpu;
        private long left;
        private long operations;
        private long bytes;
        private long inFlight;
        private long end;
        private long used = -1;

        Tally(Spec spec) {
            limit = left = spec.operations();
            cpu = system.getProcessCpuTime();
            start = end = System.nanoTime();
            until = spec.durationNs() == Long.MAX_VALUE ? Long.MAX_VALUE : start + spec.durationNs();
        }

        /** CLOCK_MONOTONIC, in nanoseconds. */
        long start() {
            return start;
        }

        /** Takes one operation from the budget; false if no operation or no time is left. */
        boolean begin(long at) {
            if (at < until) {
                return left-- > 0;
            }
            stop();
            return false;
        }

        /** Reads the CPU time when the time is found over: waiting for operations in flight takes none. */
        private void stop() {
            if (used < 0) {
                used = system.getProcessCpuTime() - cpu;
            }
        }

        void succeed(long received, long began, long ended) {
            if (ended > until) {
                inFlight += 1;
                return;
            }
            long time = Math.max(1, ended - began);
            // The highest value of the bucket with three significant digits, as in HdrHistogram.
            long below = (1L << Math.max(0, 53 - Long.numberOfLeadingZeros(time))) - 1;
            latency.merge(time | below, 1L, Long::sum);
            operations += 1;
            bytes += received;
            end = ended;
        }

        /** After the window only the end of an operation's time is a failure. */
        void fail(String kind, long ended) {
            if (ended > until) {
                inFlight += 1;
                if (!kind.equals("timeout")) {
                    return;
                }
            }
            errors.merge(kind, 1L, Long::sum);
            end = ended;
        }

        /** Prints the window, and ends the program. */
        void done() {
            stop();
            var done = new JsonObject();
            done.addProperty("event", "done");
            done.addProperty("operations", operations);
            done.addProperty("bytes", bytes);
            done.addProperty("start_ns", start);
            long made = operations + errors.values().stream().mapToLong(Long::longValue).sum();
            boolean isUsedUp = made >= limit && inFlight == 0;
            done.addProperty("end_ns", until == Long.MAX_VALUE || isUsedUp ? end : until);
            if (inFlight > 0) {
                done.addProperty("in_flight", inFlight);
            }
            done.add("errors", GSON.toJsonTree(errors));
            if (!latency.isEmpty()) {
                var pairs = latency.entrySet().stream().map(pair -> List.of(pair.getKey(), pair.getValue()));
                var ends = Map.of("min", latency.firstKey(), "max", latency.lastKey());
                JsonObject counts = GSON.toJsonTree(ends).getAsJsonObject();
                counts.add("pairs", GSON.toJsonTree(pairs.toList()));
                done.add("latency", counts);
            }
            done.addProperty("cpu_ns", used);
            done.addProperty("verified", operations);
            System.out.println(done);
            Runtime.getRuntime().halt(0);
        }
    }

    /** The content of a page. */
    static byte[] page(int size) {
        String alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        byte[] bytes = new byte[size];
        for (int at = 0; at < size; at++) {
            long word = (at / 8 + 1) * 0x9e3779b97f4a7c15L;
            word = (word ^ word >>> 30) * 0xbf58476d1ce4e5b9L;
            word = (word ^ word >>> 27) * 0x94d049bb133111ebL;
            word ^= word >>> 31;
            bytes[at] = (byte) alphabet.charAt((int) (word >>> 8 * (at % 8) & 63));
        }
        return bytes;
    }
}
