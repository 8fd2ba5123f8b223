import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * The contract (sdk/CONTRACT.md) for servers in Java.
 *
 * <p>argv -> start(): refusals, "describe" -> the program's run(spec) -> JSON lines on stdout
 */
final class Linerate {
    static final int BACKLOG = 511;
    private static final int CONTRACT = 3;
    private static final int UNSUPPORTED = 127;
    private static final int BAD_SPEC = 2;
    /** The spec's fields and options in the contract. Unknown names are refused. */
    private static final List<String> FIELDS = words(
            "contract role layer workload listen connect sources connections threads operations bytes",
            "duration_ns timeout_ns size path expect rate arrival seed sample_ns request tls options");
    private static final List<String> OPTIONS = words(
            "buffer direction ends interval_us mode mtu nc nodelay resend runtime",
            "search shape transfers tun window");
    private static final Gson GSON = new Gson();

    /** The content of "describe". */
    record Program(
            String name, String version, List<String> roles, List<String> layers, List<String> workloads) {}

    record Spec(InetSocketAddress listen, int size) {}

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
            int size = spec.has("size") ? spec.get("size").getAsInt() : 0;
            var checked = new Spec(address(text(spec, "listen")), size);
            // SIGTERM runs the hook. Java's own status would be 143.
            Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
            run.of(checked);
        } catch (Refusal refusal) {
            System.err.println(program.name() + ": " + refusal.getMessage());
            System.exit(refusal.status);
        } catch (Exception error) {
            System.err.println(program.name() + ": " + error);
            Runtime.getRuntime().halt(1);
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
