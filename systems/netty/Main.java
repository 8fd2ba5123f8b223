import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerExpectContinueHandler;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.util.Version;
import java.net.InetSocketAddress;
import java.util.List;

/**
 * Netty's HTTP server as a system of linerate (sdk/CONTRACT.md): Main SPEC.
 *
 * <p>After Netty's example "http.helloworld": one event loop, a handler for each connection. OneLoop has its client.
 */
final class Main {
    public static void main(String[] arguments) {
        String netty = Version.identify().get("netty-codec-http").artifactVersion();
        String version = netty + " (Java " + Runtime.version().feature() + ")";
        var program = new Linerate.Program(
                "netty", version, List.of("client", "server"), List.of("http", "tcp"), List.of("crr", "rr"),
                List.of(Linerate.ONE_LOOP));
        Linerate.start(program, arguments, Main::run);
    }

    private static void run(Linerate.Spec spec) throws Exception {
        boolean isOneLoop = spec.isOneLoop();
        // Over TCP alone, and as a client, it is a part of one loop.
        boolean isPages = spec.isServer() && spec.layer().equals("http");
        Linerate.need(isOneLoop ? spec.workload().equals("rr") : isPages);
        byte[] page = Linerate.page(spec.size());
        var group = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        Channel channel = new ServerBootstrap()
                .option(ChannelOption.SO_BACKLOG, Linerate.BACKLOG)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .group(group)
                .channel(EpollServerSocketChannel.class)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel connection) {
                        if (spec.layer().equals("tcp")) {
                            connection.pipeline().addLast(new OneLoop.Echo());
                            return;
                        }
                        connection.pipeline().addLast(new HttpServerCodec());
                        connection.pipeline().addLast(new HttpServerExpectContinueHandler());
                        connection.pipeline().addLast(new Pages(page));
                    }
                })
                .bind(spec.listen())
                .sync()
                .channel();
        var bound = (InetSocketAddress) channel.localAddress();
        if (isOneLoop) {
            OneLoop.run(spec, group, bound);
        } else {
            Linerate.ready(bound);
        }
    }

    private static final class Pages extends SimpleChannelInboundHandler<HttpObject> {
        private final byte[] page;

        Pages(byte[] page) {
            this.page = page;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
            if (!(message instanceof HttpRequest request)) {
                return;
            }
            boolean isKept = HttpUtil.isKeepAlive(request);
            FullHttpResponse response = new DefaultFullHttpResponse(
                    request.protocolVersion(), HttpResponseStatus.OK, Unpooled.wrappedBuffer(page));
            response.headers()
                    .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.TEXT_PLAIN)
                    .setInt(HttpHeaderNames.CONTENT_LENGTH, page.length);
            if (!isKept) {
                response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
            } else if (!request.protocolVersion().isKeepAliveDefault()) {
                response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
            }
            var written = context.write(response);
            if (!isKept) {
                written.addListener(ChannelFutureListener.CLOSE);
            }
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        /** A peer that vanishes ends its own connection only. */
        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }
    }
}
