// Servers as the Asio tutorial writes them: a session that keeps itself alive through its handlers.
#include "linerate/event_loop.hpp"
#include "net.hpp"

using namespace linerate;

namespace {

class Echo : public std::enable_shared_from_this<Echo> {
public:
    Echo(tcp::socket socket, const Spec&) : socket_(std::move(socket)) {}
    void start() { read(); }

private:
    void read() {
        socket_.async_read_some(net::buffer(data_), [this, self = shared_from_this()](error_code error, std::size_t length) {
            if (!error) write(length);
        });
    }
    void write(std::size_t length) {
        net::async_write(socket_, net::buffer(data_, length), [this, self = shared_from_this()](error_code error, std::size_t) {
            if (!error) read();
        });
    }

    tcp::socket socket_;
    std::array<char, echo_buffer> data_;
};

class Http : public std::enable_shared_from_this<Http> {
public:
    Http(tcp::socket socket, const http::Answers& answers) : socket_(std::move(socket)), answers_(answers) {}
    void start() { read(); }

private:
    void read() {
        auto room = net::buffer(data_) + filled_;
        socket_.async_read_some(room, [this, self = shared_from_this()](error_code error, std::size_t length) {
            if (error) return;
            filled_ += length;
            answer();
        });
    }
    void answer() {
        auto request = http::parse({data_.data(), filled_});
        if (request.state == http::Request::incomplete) return read();
        if (request.state == http::Request::bad) return write(http::bad_request, {});
        write(request.keep ? answers_.keep : answers_.close, request);
    }
    void write(std::string_view bytes, http::Request request) {
        bool stays = request.state == http::Request::good && request.keep;
        net::async_write(socket_, net::buffer(bytes), [this, self = shared_from_this(), stays, request](error_code error, std::size_t) {
            if (error || !stays) return;
            filled_ -= request.length;
            if (filled_ == 0) return read();
            std::memmove(data_.data(), data_.data() + request.length, filled_);
            answer();
        });
    }

    tcp::socket socket_;
    const http::Answers& answers_;
    std::size_t filled_ = 0;
    std::array<char, http::buffer> data_;
};

// What all connections of a `stream` share.
struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), size(spec.size), content(spec.size) {}
    Direction direction;
    std::size_t size;
    Content content;
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
    Stream(tcp::socket socket, const Flow& flow)
        : socket_(std::move(socket)), flow_(flow), data_(flow.size), reading_(flow.direction.client_writes),
          writing_(flow.direction.client_reads) {}

    void start() {
        if (!writing_) return read();
        net::async_read(socket_, net::buffer(number_), [this, self = shared_from_this()](error_code error, std::size_t) {
            if (error) return;
            wanted_ = from_wire(number_);
            write();
            if (reading_) read();
        });
    }

private:
    void read() {
        socket_.async_read_some(net::buffer(data_), [this, self = shared_from_this()](error_code error, std::size_t length) {
            good_ += flow_.content.good(received_, data_.data(), length);
            received_ += length;
            if (!error) return read();
            if (error != net::error::eof) return;
            reading_ = false;
            finish();
        });
    }
    void write() {
        if (sent_ == wanted_) {
            writing_ = false;
            return finish();
        }
        auto length = std::size_t(std::min<std::uint64_t>(flow_.size, wanted_ - sent_));
        auto piece = net::buffer(flow_.content.at(sent_), length);
        net::async_write(socket_, piece, [this, self = shared_from_this()](error_code error, std::size_t length) {
            if (error) return;
            sent_ += length;
            write();
        });
    }
    void finish() {
        if (reading_ || writing_ || !flow_.direction.client_writes) return;
        number_ = to_wire(good_);
        net::async_write(socket_, net::buffer(number_), [self = shared_from_this()](error_code, std::size_t) {});
    }

    tcp::socket socket_;
    const Flow& flow_;
    std::vector<char> data_;
    std::array<char, 8> number_;
    bool reading_, writing_;
    std::uint64_t received_ = 0, good_ = 0, sent_ = 0, wanted_ = 0;
};

template <class Session, class Shared> class Server {
public:
    Server(const Spec& spec, const Shared& shared)
        : threads_(spec.threads), shared_(shared), context_(int(threads_)), acceptor_(listen(context_, spec)), rest_(context_) {
        accept();
        run(context_, threads_);
    }

private:
    void accept() {
        acceptor_.async_accept(connection_executor(context_, threads_), [this](error_code error, tcp::socket socket) {
            if (error) return rest();
            socket.set_option(tcp::no_delay(true), error);
            auto executor = socket.get_executor();
            auto session = std::make_shared<Session>(std::move(socket), shared_);
            // On its own executor from the first step on: the acceptor's thread may be another.
            net::dispatch(executor, [session] { session->start(); });
            accept();
        });
    }
    void rest() {
        rest_.expires_after(accept_rest);
        rest_.async_wait([this](error_code) { accept(); });
    }

    std::uint32_t threads_;
    const Shared& shared_;
    net::io_context context_;
    tcp::acceptor acceptor_;
    net::steady_timer rest_;
};

} // namespace

void serve_http(const Spec& spec) { Server<Http, http::Answers>(spec, http::Answers(spec.size)); }
void serve_echo(const Spec& spec) { Server<Echo, Spec>(spec, spec); }
void serve_stream(const Spec& spec) { Server<Stream, Flow>(spec, Flow(spec)); }
