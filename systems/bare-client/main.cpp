// Clients of HTTP that do nothing but send and count bytes (NOTES.md). This file is the contract: the spec, the first
// response, the result. The loops are rr.c, crr.c and paced.c.
#define LINERATE_IMPLEMENTATION
#include "bare.h"
#include "linerate.hpp"

#include <memory>
#include <netdb.h>

using namespace linerate;

// Counts the operations that do not end in the window or do not succeed; the loops count the others.
struct tally {
    Window window;
    Result result;
    explicit tally(const Spec& spec) : window(spec), result(window) {}
};

namespace {

// Of an open loop.
double rate = 0;
bool is_random = false;

sockaddr_storage numeric(const std::string& ip, std::uint16_t port, socklen_t& length) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST, hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(ip.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) throw BadSpec("not an address: " + ip);
    sockaddr_storage address{};
    std::memcpy(&address, found->ai_addr, found->ai_addrlen);
    length = found->ai_addrlen;
    freeaddrinfo(found);
    return address;
}

// Makes one request before the window and compares its whole answer; the length of each further one.
std::size_t first_response(const work& work, std::size_t size) {
    int fd = connected(&work, 0);
    if (fd < 0) throw std::runtime_error("the first connection failed");
    timeval timeout{time_t(work.timeout_ns / 1'000'000'000), 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    auto sent = send(fd, work.request, work.request_length, MSG_NOSIGNAL);
    if (sent < 0) throw std::runtime_error("the first request was not sent");
    std::string answer, chunk(65'536, '\0');
    auto end = answer.npos;
    while (end == answer.npos || answer.size() < end + 4 + size) {
        auto n = recv(fd, chunk.data(), chunk.size(), 0);
        if (n <= 0) throw std::runtime_error("the first response is not complete");
        answer.append(chunk, 0, std::size_t(n));
        end = answer.find("\r\n\r\n");
    }
    close(fd);
    if (answer.rfind("HTTP/1.1 200 ", 0) != 0 || answer.substr(end + 4) != page(size))
        throw std::runtime_error("the first response has another status or content");
    return answer.size();
}

// One connection more than the window has: the first response's is closed before.
void drive(const Spec& spec, bool persistent) {
    need_limit(spec);
    need(spec.timeout_ns > 0, "\"timeout_ns\" must be above 0");
    if (spec.threads != 1) throw Unsupported("more than one thread");
    tally tally(spec);
    work work{};
    work.to = numeric(spec.connect.ip, spec.connect.port, work.address_length);
    std::vector<sockaddr_storage> sources;
    for (const auto& source : spec.sources) sources.push_back(numeric(source, 0, work.address_length));
    auto ending = persistent ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
    auto request = "GET / HTTP/1.1\r\nHost: " + spec.connect.ip + ending;
    work.sources = sources.data(), work.source_count = sources.size();
    work.request = request.data(), work.request_length = request.size();
    work.connections = spec.connections, work.operations = spec.operations, work.timeout_ns = spec.timeout_ns;
    work.tally = &tally;
    work.response_length = first_response(work, spec.size);
    std::vector<int> sockets;
    for (std::uint32_t i = 0; persistent && i < spec.connections; ++i)
        if (int fd = connected(&work, i); fd >= 0) sockets.push_back(fd);
    tally.window.open();
    auto start = tally.window.start();
    work.end_ns = tally.window.end_ns();
    auto count = std::uint32_t(sockets.size());
    auto& result = tally.result;
    work.has_random_gaps = is_random, work.gap_ns = rate > 0 ? std::uint64_t(1e9 / rate) : 0;
    result.operations = rate > 0 ? run_paced(&work, start, sockets.data(), count)
        : persistent ? run_rr(&work, start, sockets.data(), count)
                     : run_crr(&work, start);
    result.end_ns = now_ns();
    result.bytes = result.operations * spec.size;
    tally.window.done(std::array{&tally});
}

void drive_rr(const Spec& spec) { drive(spec, true); }
void drive_crr(const Spec& spec) { drive(spec, false); }

} // namespace

void failed(const work* work, phase phase, int error) {
    auto kind = phase == CONNECTING ? connect_kind(error)
        : error == ETIMEDOUT ? Kind::timeout
        : error < 0 ? Kind::wrong_length
                    : transfer_kind(error, error == 0, phase == RECEIVING);
    work->tally->result.fail(kind, now_ns());
}
void window_over(const work* work) { work->tally->window.end(); }
void was_in_flight(const work* work) { work->tally->result.succeed(now_ns(), 0); }

// The library has no open loop: takes the rate out of the spec of `rr`, unless it rises.
std::string without_rate(const char* spec) {
    auto json = nlohmann::json::parse(spec, nullptr, false);
    auto arrival = json.is_object() ? json.value("arrival", "constant") : "";
    if (arrival == "ramp" || !json.contains("rate") || json.value("workload", "") != "rr") return spec;
    is_random = arrival == "poisson", rate = json["rate"].get<double>();
    json.erase("rate");
    return json.dump();
}

int main(int argc, char** argv) {
    std::string spec = argc > 1 ? without_rate(argv[1]) : "";
    if (argc > 1) argv[1] = spec.data();
    return start(argc, argv, {"bare-client", "1", {
        {"client", "http", "rr", drive_rr},
        {"client", "http", "crr", drive_crr},
    }});
}
