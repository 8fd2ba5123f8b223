// The content that every server sends and every client compares, and sizes that all programs share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace linerate {

// Read buffer of an echo server, in bytes.
inline constexpr std::size_t echo_buffer = 65'536;
// The longest write of a `stream`, and the longest message that a program accepts, in bytes.
inline constexpr std::size_t longest_write = 1 << 20, longest_message = 16 << 20;
// Backlog of every listener (systems/README.md).
inline constexpr int backlog = 511;

// The first `size` bytes of the content (Steele, Lea, Flood: splitmix64, 2014).
inline std::string page(std::size_t size) {
    static constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string bytes(size, '\0');
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (i % 8 == 0) {
            word = (i / 8 + 1) * 0x9e3779b97f4a7c15u;
            word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
            word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
            word ^= word >> 31;
        }
        bytes[i] = alphabet[(word >> (8 * (i % 8))) & 63];
    }
    return bytes;
}

// CRC-32 (ISO-HDLC, as in zlib), for clients of pages.
inline std::uint32_t crc32(std::string_view bytes) {
    std::uint32_t crc = ~0u;
    for (unsigned char byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

// The content of a stream, which repeats after 65,536 bytes. A piece of up to `longest` bytes is contiguous.
class Content {
public:
    static constexpr std::size_t period = 65'536;

    explicit Content(std::size_t longest) : bytes_(page(period)), longest_(std::max<std::size_t>(longest, 1)) {
        while (bytes_.size() < period + longest) bytes_.append(bytes_, 0, period);
    }
    const char* at(std::uint64_t position) const { return bytes_.data() + position % period; }

    // The number of received bytes that equal the content at `position`.
    std::uint64_t good(std::uint64_t position, const char* received, std::size_t length) const {
        std::uint64_t equal = 0;
        for (std::size_t done = 0; done < length;) {
            auto piece = std::min(length - done, longest_);
            equal += good_piece(at(position + done), received + done, piece);
            done += piece;
        }
        return equal;
    }

private:
    static std::uint64_t good_piece(const char* right, const char* received, std::size_t length) {
        if (std::memcmp(right, received, length) == 0) return length;
        std::uint64_t equal = 0;
        for (std::size_t i = 0; i < length; ++i) equal += right[i] == received[i];
        return equal;
    }

    std::string bytes_;
    std::size_t longest_;
};

// A number on the wire: 8 bytes little-endian.
inline std::array<char, 8> to_wire(std::uint64_t number) {
    std::array<char, 8> bytes;
    for (char& byte : bytes) byte = char(number), number >>= 8;
    return bytes;
}
inline std::uint64_t from_wire(const std::array<char, 8>& bytes) {
    std::uint64_t number = 0;
    for (int i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[std::size_t(i)]);
    return number;
}

} // namespace linerate
