// A `stream` over KCP: the settings of all systems, and the frames inside a conversation. A frame has four bytes of length
// (little-endian) and that many bytes of content; a length of 0 is the end.
#pragma once

#include "result.hpp"

namespace linerate::kcp {

// Bytes of both socket buffers: the default of kcptun. The kernel grants less where net.core.rmem_max is smaller, to all
// programs the same.
inline constexpr int socket_buffer = 4 << 20;

struct Setting {
    int mtu, window, interval_ms, nodelay, resend, nc;

    // `finest_us`: the shortest interval that the library supports.
    Setting(const Spec& spec, std::uint64_t finest_us)
        : mtu(number(spec, "mtu", 1'400, 50, 65'507)), window(number(spec, "window", 1'024, 1, 65'535)),
          interval_ms(number(spec, "interval_us", 10'000, 1, 5'000'000) / 1'000), nodelay(number(spec, "nodelay", 1, 0, 1)),
          resend(number(spec, "resend", 2, 0, 1'000)), nc(number(spec, "nc", 1, 0, 1)) {
        if (number_option(spec, "interval_us", 10'000, 1, 5'000'000) < finest_us)
            throw Unsupported("\"options.interval_us\" below " + std::to_string(finest_us));
        need(spec.size >= 1 && spec.size <= 65'536, "\"size\" must be 1 to 65536 bytes");
        need_client_writes(spec);
        if (auto mode = datagram::mode(spec); mode != "single") throw Unsupported("KCP with datagrams in mode " + mode);
    }

private:
    static int number(const Spec& spec, const char* name, std::uint64_t otherwise, std::uint64_t low, std::uint64_t high) {
        return int(number_option(spec, name, otherwise, low, high));
    }
};

// The writes of a client's stream, one after another.
class Writer {
public:
    Writer(const Spec& spec, const Window& window) : content_(spec.size), window_(window) {}

    std::uint64_t written = 0; // bytes of content
    bool ended = false;        // next() has returned the last frame

    const std::string& next() {
        auto length = window_.stream_is_over(written) ? 0 : window_.next_piece(written);
        ended = length == 0;
        auto prefix = to_wire(length);
        frame_.assign(prefix.data(), 4).append(content_.at(written), length);
        written += length;
        return frame_;
    }

private:
    Content content_;
    const Window& window_;
    std::string frame_;
};

// The server's end of one stream. Bytes arrive cut anywhere.
class Reader {
public:
    Reader(const Content& content, std::size_t longest) : content_(content), longest_(longest) {}

    std::uint64_t good = 0;
    bool ended = false;

    void take(const char* bytes, std::size_t length) {
        while (length > 0 && !ended) {
            if (left_ == 0) {
                prefix_[has_++] = *bytes++, --length;
                if (has_ == 4) has_ = 0, left_ = from_wire(prefix_), ended = left_ == 0;
                continue;
            }
            auto piece = std::min({std::size_t(left_), length, longest_});
            good += content_.good(at_, bytes, piece);
            at_ += piece, left_ -= piece, bytes += piece, length -= piece;
        }
    }

private:
    const Content& content_;
    std::size_t longest_, has_ = 0;
    std::array<char, 8> prefix_{};
    std::uint64_t at_ = 0, left_ = 0;
};

} // namespace linerate::kcp
