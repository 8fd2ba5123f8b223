// A transport carries a protocol (sdk/cpp/linerate/protocol_spec.hpp): a socket here, TLS in tls_transport.hpp, WebSocket in
// systems/beast. Each has the same steps in a blocking and in an asynchronous form.
#pragma once

#include "net.hpp"
#include "linerate/protocol_spec.hpp"

// State that all connections of a process share.
struct Setting {
    explicit Setting(const linerate::Spec& spec) : spec(spec), content(spec.workload == "stream" ? spec.size : 0) {}
    const linerate::Spec& spec;
    linerate::Content content;
};

// A client's connection that was not established, for another reason than a system error.
struct Refused {
    linerate::Kind kind;
};

// The steps that a socket and TLS on a socket have in common. `Stream` is Asio's.
template <class Stream> class StreamTransport {
public:
    template <class... Arguments>
    StreamTransport(const linerate::Spec& spec, Arguments&&... arguments)
        : stream_(std::forward<Arguments>(arguments)...), data_(linerate::read_size(spec)) {}

    auto get_executor() { return stream_.get_executor(); }

    void write(std::string_view piece) { net::write(stream_, net::buffer(piece)); }
    std::string_view read() { return {data_.data(), stream_.read_some(net::buffer(data_))}; }

    template <class F> void async_write(std::string_view piece, F then) {
        net::async_write(stream_, net::buffer(piece),
                         [then = std::move(then)](error_code error, std::size_t) { then(error); });
    }
    template <class F> void async_read(F then) {
        stream_.async_read_some(net::buffer(data_),
                                [this, then = std::move(then)](error_code error, std::size_t length) {
                                    then(error, std::string_view(data_.data(), length));
                                });
    }
    // Cancels operations that wait for the socket, without a closing handshake.
    void drop() {
        error_code ignored;
        stream_.lowest_layer().close(ignored);
    }
    void shut_down() {
        error_code ignored;
        stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
    }

protected:
    Stream stream_;

private:
    std::vector<char> data_;
};

class PlainTransport : public StreamTransport<TcpSocket> {
public:
    using Setting = ::Setting;
    PlainTransport(TcpSocket socket, Setting& setting) : StreamTransport(setting.spec, std::move(socket)) {}

    static bool is_end(error_code error) { return error == net::error::eof; }

    // A client's handshakes, blocking, before the window; and the TLS that they negotiated.
    void greet(const linerate::Spec&) {}
    std::string tls() { return {}; }

    void accept() {}
    void close() { stream_.close(); }

    template <class F> void async_connect(const tcp::endpoint& to, F then) { stream_.async_connect(to, std::move(then)); }
    template <class F> void async_accept(F then) { then(error_code()); }
    template <class F> void async_close(F then) { drop(), then(error_code()); }
};
