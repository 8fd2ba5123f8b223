// What the headers promise, checked against known answers. `cargo test -p linerate --test sdk` compiles and runs it.
#define LINERATE_IMPLEMENTATION
#include "linerate.hpp"
#include "linerate/conversation.hpp"
#include "linerate/kcp.hpp"

#include <cstdio>

using namespace linerate;

static int failures = 0;
static void check(bool good, const char* what) {
    if (!good) std::fprintf(stderr, "FAILED: %s\n", what), ++failures;
}

static http::Request parse(std::string_view input) { return http::parse(input); }

static void content() {
    auto long_page = page(4097);
    for (std::size_t size : {0, 1, 7, 8, 9, 100}) check(page(size) == long_page.substr(0, size), "a short page is the start of a long one");
    check(crc32("123456789") == 0xcbf43926, "CRC-32 of the check string");
    Content stream(100'000);
    check(std::memcmp(stream.at(65'536 + 5), page(105).data() + 5, 100) == 0, "streams repeat after 65,536 bytes");
    auto bytes = page(1000);
    check(stream.good(65'536, bytes.data(), 1000) == 1000, "good bytes are counted");
    bytes[7] = '!';
    check(stream.good(0, bytes.data(), 1000) == 999, "a wrong byte is not counted");
    check(from_wire(to_wire(0x1122334455667788)) == 0x1122334455667788, "numbers survive the wire");
    check(to_wire(1)[0] == 1, "little-endian");
}

static void datagrams() {
    datagram::Flow flow;
    for (std::uint64_t sequence : {0, 1, 3, 2, 3, 0, 7, 4, 4}) flow.good(sequence, 100, 10 + sequence);
    auto& r = flow.report;
    check(r.received == 6 && r.bytes == 600 && r.reordered == 2 && r.duplicates == 3, "a known sequence is told as it is");
    check(r.first_ns == 10 && r.last_ns == 14, "the clock of the first and the last datagram");
    flow.good(65'536 + 3, 100, 1); // in the place of number 3
    flow.good(65'536 + 3 + 65'536, 100, 1);
    flow.good(65'536 + 4, 100, 1); // in the place of number 4, but not it
    check(r.received == 9 && r.duplicates == 3 && r.reordered == 3, "numbers long ago are forgotten");

    Spec spec;
    spec.size = 64, spec.bytes = 128, spec.options["direction"] = "client-writes";
    datagram::Payload payload(spec);
    datagram::Flows<int> server(payload);
    datagram::Sender client(spec);
    auto deliver = [&](std::string bytes) { return std::string(server.arrived(1, bytes.data(), bytes.size(), 5)); };
    auto hello = deliver(client.question());
    check(!client.answers("12345678", 8) && client.answers(hello.data(), hello.size()), "HELLO comes back");
    for (; client.has_more(); ++client.sent) check(deliver(client.next()).empty(), "payload has no answer");
    auto wrong = payload.number(7);
    wrong[20] ^= 1;
    deliver(wrong), deliver("short");
    auto report = deliver(client.question());
    check(client.answers(report.data(), report.size()), "END is answered by a report");
    check(client.report.received == 2 && client.report.damaged == 1 && client.report.last_ns == 5, "which tells what came");
    Account account;
    account.add_flow(5, client.report, 64);
    check(account.datagrams->lost == 3 && account.bytes == 128 && account.verified == 112, "what did not come is lost");
}

static void frames() {
    Spec spec;
    spec.size = 700, spec.bytes = 1'351, spec.workload = "stream";
    Window window(spec);
    kcp::Writer writer(spec, window);
    std::string stream;
    while (!writer.ended) stream += writer.next();
    check(stream.size() == 1'351 + 3 * 4 && writer.written == 1'351, "two frames and the end");
    Content content(spec.size);
    for (std::size_t cut : {1, 3, 5, 64, 701, 5'000}) {
        kcp::Reader reader(content, spec.size);
        for (std::size_t at = 0; at < stream.size(); at += cut) reader.take(stream.data() + at, std::min(cut, stream.size() - at));
        check(reader.ended && reader.good == 1'351, "frames are read however they are cut");
    }
    stream[10] ^= 1;
    kcp::Reader reader(content, spec.size);
    reader.take(stream.data(), stream.size());
    check(reader.good == 1'350, "a wrong byte is not counted");
}

static void histogram() {
    Histogram all, odd, even;
    std::uint64_t n = 100'000, seen = 0, total = 0, p99 = 0, before = 0;
    for (std::uint64_t us = 1; us <= n; ++us) all.record(us * 1000), (us % 2 ? odd : even).record(us * 1000);
    odd.merge(even);
    all.each([&](std::uint64_t value, std::uint64_t count) {
        check(value > before || before == 0, "ascending"), before = value, total += count;
        if (seen < n * 99 / 100) p99 = value;
        seen += count;
    });
    check(total == n, "every value is counted");
    check(p99 >= 99'000'000 && p99 < 99'099'000, "three significant digits");
    std::uint64_t merged = 0;
    odd.each([&](std::uint64_t, std::uint64_t count) { merged += count; });
    check(merged == n, "merging is adding");
    Histogram edge;
    for (std::uint64_t value : {std::uint64_t(0), std::uint64_t(2'047), std::uint64_t(2'048), UINT64_MAX}) edge.record(value);
    std::vector<std::uint64_t> values;
    edge.each([&](std::uint64_t value, std::uint64_t) { values.push_back(value); });
    check(values.size() == 4 && values[1] == 2'047 && values[2] == 2'049, "buckets of HdrHistogram");
    check(Histogram::lowest_equivalent(2'049) == 2'048, "the lowest value of a bucket");
}

static void requests() {
    std::string_view good = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nGET";
    check(parse(good).state == http::Request::good && parse(good).length == good.size() - 3 && parse(good).keep, "a GET");
    for (std::size_t cut = 0; cut < good.size() - 3; ++cut)
        check(parse(good.substr(0, cut)).state == http::Request::incomplete, "the beginning of a GET");
    check(!parse("GET / HTTP/1.0\r\n\r\n").keep, "1.0 closes");
    check(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep, "1.0 stays if asked to");
    check(!parse("GET / HTTP/1.1\r\nconnection: TE, Close\r\n\r\n").keep, "1.1 closes if asked to");
    for (std::string_view bad : {"POST / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01", "GET  HTTP/1.1\r\n\r\n",
             "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
             "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\na b: x\r\n\r\n"})
        check(parse(bad).state == http::Request::bad, bad.data());
    check(parse(std::string("GET /") + std::string(http::buffer, 'a')).state == http::Request::bad, "a head without end");
}

// All that this end has to say now.
static std::string said(Conversation& end) {
    std::string all;
    for (auto piece = end.next(); !piece.empty(); piece = end.next()) all += piece;
    return all;
}

// Two ends talk until the client has had enough; what crosses from the server is cut into pieces of `cut` bytes, and the
// other way too where `both`.
static void talk(Client& client, Conversation& server, std::size_t cut, bool both) {
    auto hear = [](Conversation& end, const std::string& sent, std::size_t cut) {
        for (std::size_t i = 0; i < sent.size(); i += cut) end.receive(std::string_view(sent).substr(i, cut));
    };
    for (int turns = 0; turns < 100 && !client.over(); ++turns) {
        auto asked = said(client);
        hear(server, asked, both ? cut : asked.size() + 1);
        hear(client, said(server), cut);
    }
}

static void conversations() {
    Spec spec;
    spec.workload = "stream", spec.size = 1000, spec.bytes = 100'001, spec.options = {{"transfers", "3"}};
    Content content(spec.size);
    for (auto direction : {"client-writes", "client-reads"})
        for (std::size_t cut : {1, 7, 8, 999, 1'000'000}) {
            spec.options["direction"] = direction;
            StreamClient client(spec, content);
            StreamServer server(spec, content);
            talk(client, server, cut, true);
            check(client.over() && client.account.bytes == 3 * spec.bytes, "three transfers, whatever the pieces");
            check(client.account.operations == 3 * 101, "the writes of each");
            std::uint64_t times = 0;
            client.account.latency.each([&](std::uint64_t, std::uint64_t count) { times += count; });
            check(times == 3, "each transfer has its time");
        }
    spec.options["direction"] = "client-reads";
    StreamClient client(spec, content);
    check(client.next().size() == 8 && client.next().empty(), "a client that reads asks with a number");
    client.receive(std::string(spec.bytes, '!'));
    check(client.account.bytes == 0 && client.account.errors[std::size_t(Kind::wrong_content)] == 1, "wrong bytes are not counted");

    Spec rr;
    rr.workload = "rr", rr.size = 100, rr.operations = 5;
    for (std::size_t cut : {1, 100}) {
        Window window(rr);
        window.open();
        RrClient pinger(rr, window);
        Echo echo;
        talk(pinger, echo, cut, false);
        check(pinger.over() && pinger.account.operations == 5 && pinger.account.bytes == 500, "five round trips");
    }
    Window window(rr);
    window.open();
    RrClient pinger(rr, window);
    auto asked = std::string(pinger.next());
    pinger.receive(asked + "!");
    check(pinger.account.operations == 0, "more than was sent is not what was sent");
}

static void watchdog() {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair of sockets");
    Watched still;
    still.hold(pair[0]);
    Watchdog dog(1'000'000, {&still});
    char byte;
    check(read(pair[0], &byte, 1) == 0 && still.timed_out(), "a connection that stands still is broken");
    close(pair[0]), close(pair[1]);
}

int main() {
    content();
    datagrams();
    frames();
    histogram();
    requests();
    conversations();
    watchdog();
    std::puts(failures == 0 ? "sdk/cpp: every check passed" : "sdk/cpp: checks failed");
    return failures == 0 ? 0 : 1;
}
