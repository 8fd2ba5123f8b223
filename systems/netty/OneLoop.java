import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.timeout.ReadTimeoutException;
import io.netty.handler.timeout.ReadTimeoutHandler;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Client and server on one event loop ("ends" of the contract): a channel with its handler for each connection. */
final class OneLoop {
    /** The virtual machine compiles hot code before the window, for this time. */
    private static final long WARM_UP_NS = 1_000_000_000L;

    static void run(Linerate.Spec spec, EventLoopGroup loop, InetSocketAddress server) throws Exception {
        byte[] content = Linerate.page(spec.size());
        List<Connection<?>> all = new ArrayList<>();
        for (int i = 0; i < spec.connections(); i++) {
            boolean isHttp = spec.layer().equals("http");
            Connection<?> connection = isHttp ? new Requests(content) : new Exchanges(content);
            connection.channel = new Bootstrap()
                    .group(loop)
                    .channel(EpollSocketChannel.class)
                    .option(ChannelOption.TCP_NODELAY, true)
                    .handler(new ChannelInitializer<SocketChannel>() {
                        @Override
                        protected void initChannel(SocketChannel channel) {
                            connection.before(channel);
                            channel.pipeline()
                                    .addLast(new ReadTimeoutHandler(spec.timeoutNs(), TimeUnit.NANOSECONDS))
                                    .addLast(connection);
                        }
                    })
                    .connect(server)
                    .sync()
                    .channel();
            all.add(connection);
        }
        loop.next().execute(() -> new Window(spec.forTime(WARM_UP_NS), all, warm ->
                new Window(spec, all, Linerate.Tally::done).open()).open());
    }

    /** All operations of a spec, on the loop's thread. */
    private static final class Window {
        private final Linerate.Spec spec;
        private final List<Connection<?>> all;
        private final Consumer<Linerate.Tally> over;
        private Linerate.Tally tally;
        private int running;

        Window(Linerate.Spec spec, List<Connection<?>> all, Consumer<Linerate.Tally> over) {
            this.spec = spec;
            this.all = all;
            this.over = over;
            this.running = all.size();
        }

        void open() {
            tally = new Linerate.Tally(spec);
            for (Connection<?> connection : all) {
                connection.window = this;
                connection.next(tally.start());
            }
        }

        void end() {
            if (--running == 0) {
                over.accept(tally);
            }
        }
    }

    private abstract static class Connection<M> extends SimpleChannelInboundHandler<M> {
        final byte[] content;
        Channel channel;
        Window window;
        private boolean isAwaited;
        private long began;

        Connection(byte[] content) {
            this.content = content;
        }

        void before(Channel channel) {}

        abstract Object message();

        void next(long at) {
            if (!channel.isActive() || !window.tally.begin(at)) {
                window.end();
                return;
            }
            isAwaited = true;
            began = at;
            channel.writeAndFlush(message());
        }

        /** Ends the operation: `kind` is of its failure, null where it succeeded. */
        void end(String kind) {
            if (!isAwaited) {
                return;
            }
            isAwaited = false;
            long at = System.nanoTime();
            if (kind == null) {
                window.tally.succeed(content.length, began, at);
            } else {
                window.tally.fail(kind, at);
                channel.close();
            }
            next(at);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            end("empty_reply");
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            end(cause instanceof ReadTimeoutException ? "timeout" : "reset");
        }
    }

    private static final class Exchanges extends Connection<ByteBuf> {
        private final ByteBuf bytes;
        private int received;
        private boolean isGood = true;

        Exchanges(byte[] content) {
            super(content);
            bytes = Unpooled.unreleasableBuffer(Unpooled.directBuffer(content.length).writeBytes(content));
        }

        @Override
        Object message() {
            return bytes.duplicate();
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, ByteBuf piece) {
            int length = piece.readableBytes();
            boolean fits = received + length <= content.length;
            isGood &= fits && ByteBufUtil.equals(piece, piece.readerIndex(), bytes, received, length);
            received += length;
            if (received >= content.length) {
                String kind = isGood ? null : fits ? "wrong_content" : "wrong_length";
                received = 0;
                isGood = true;
                end(kind);
            }
        }
    }

    private static final class Requests extends Connection<FullHttpResponse> {
        Requests(byte[] content) {
            super(content);
        }

        @Override
        void before(Channel channel) {
            channel.pipeline().addLast(new HttpClientCodec(), new HttpObjectAggregator(content.length + 1));
        }

        @Override
        Object message() {
            var empty = Unpooled.EMPTY_BUFFER;
            var request = new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.GET, "/", empty);
            request.headers().set(HttpHeaderNames.HOST, "127.0.0.1");
            return request;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpResponse response) {
            ByteBuf body = response.content();
            if (!response.status().equals(HttpResponseStatus.OK)) {
                end("wrong_status");
            } else if (body.readableBytes() != content.length) {
                end("wrong_length");
            } else {
                end(body.equals(Unpooled.wrappedBuffer(content)) ? null : "wrong_content");
            }
        }
    }

    /** The server over TCP, after Netty's example "echo". */
    static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.write(message);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }
    }
}
