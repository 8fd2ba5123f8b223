// A `stream` over KCP: the settings that all systems have in common, and the frames inside a conversation, which are four
// bytes of length (little-endian), so much content, and a length of 0 at the end.
#pragma once

#include "account.hpp"

namespace linerate::kcp {

struct Setting {
    int mtu, window, interval_ms, nodelay, resend, nc;

    // `finest_us`: the shortest interval that the library keeps.
    Setting(const Spec& spec, std::uint64_t finest_us)
        : mtu(int(number(spec, "mtu", 1'400, 50, 65'507))), window(int(number(spec, "window", 1'024, 1, 65'535))),
          interval_ms(int(interval(spec, finest_us))), nodelay(int(number(spec, "nodelay", 1, 0, 1))),
          resend(int(number(spec, "resend", 2, 0, 1'000))), nc(int(number(spec, "nc", 1, 0, 1))) {
        need(spec.size >= 1 && spec.size <= 65'536, "\"size\" must be 1 to 65536 bytes");
        auto direction = spec.option("direction");
        if (direction == "client-reads" || direction == "both") throw Unsupported("KCP in the direction " + direction);
        need(direction == "client-writes", "\"options.direction\" must be client-writes");
        auto mode = datagram::mode(spec);
        if (mode != "single") throw Unsupported("KCP with datagrams in mode " + mode);
    }

private:
    static std::uint64_t number(const Spec& spec, const char* name, std::uint64_t otherwise, std::uint64_t low, std::uint64_t high) {
        auto text = spec.option(name);
        if (text.empty()) return otherwise;
        char* rest = nullptr;
        auto value = std::strtoull(text.c_str(), &rest, 10);
        if (*rest != '\0' || value < low || value > high)
            throw BadSpec("\"options." + std::string(name) + "\" must be " + std::to_string(low) + " to " + std::to_string(high) + ", not " + text);
        return value;
    }
    static std::uint64_t interval(const Spec& spec, std::uint64_t finest_us) {
        auto us = number(spec, "interval_us", 10'000, 1, 5'000'000);
        if (us < finest_us) throw Unsupported("an interval of " + std::to_string(us) + " us: the library keeps none below " + std::to_string(finest_us));
        return us / 1'000;
    }
};

// The writes of a client's stream, one after the other.
class Writer {
public:
    Writer(const Spec& spec, const Window& window) : content_(spec.size), window_(window) {}

    std::uint64_t written = 0; // bytes of content
    bool ended = false;        // the last frame has been taken

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

// The server's end of one stream; bytes come cut anywhere.
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
