// A server of HTTP/1.1 in Java with a thread for each connection. PLANT_US: microseconds of auditRequest.
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class Server {
    static final byte[] ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".getBytes();

    static long number(String name, long otherwise) {
        String value = System.getenv(name);
        return value == null ? otherwise : Long.parseLong(value);
    }

    static void auditRequest(long nanos) {
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) {}
    }

    static void serve(Socket connection, long plant) {
        try (connection) {
            byte[] request = new byte[4096];
            InputStream in = connection.getInputStream();
            while (in.read(request) > 0) {
                if (plant > 0) auditRequest(plant);
                connection.getOutputStream().write(ANSWER);
            }
        } catch (java.io.IOException e) {
            // The client has gone.
        }
    }

    public static void main(String[] arguments) throws Exception {
        long plant = number("PLANT_US", 0) * 1000;
        ServerSocket listener = new ServerSocket((int) number("PORT", 8080), 512, InetAddress.getLoopbackAddress());
        while (true) {
            Socket connection = listener.accept();
            connection.setTcpNoDelay(true);
            new Thread(() -> serve(connection, plant)).start();
        }
    }
}
