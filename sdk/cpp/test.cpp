// The tests of the headers. `cargo test -p linerate --test sdk` compiles and runs them.
#define LINERATE_IMPLEMENTATION
#include "linerate.hpp"
#include "linerate/kcp.hpp"
#include "linerate/protocol_spec.hpp"

#include <cstdio>

using namespace linerate;

static int failures = 0;
static void check(bool good, const char* what) {
    if (!good) std::fprintf(stderr, "FAILED: %s\n", what), ++failures;
}

#include "test_http.hpp"

static void content() {
    auto long_page = page(4097);
    for (std::size_t size : {0, 1, 7, 8, 9, 100}) check(page(size) == long_page.substr(0, size), "a short page is a prefix of a long one");
    check(crc32("123456789") == 0xcbf43926, "CRC-32 of the check string");
    Content stream(100'000);
    check(std::memcmp(stream.at(65'536 + 5), page(105).data() + 5, 100) == 0, "streams repeat after 65,536 bytes");
    auto bytes = page(1000);
    check(stream.good(65'536, bytes.data(), 1000) == 1000, "good bytes are counted");
    bytes[7] = '!';
    check(stream.good(0, bytes.data(), 1000) == 999, "a wrong byte is not counted");
    check(from_wire(to_wire(0x1122334455667788)) == 0x1122334455667788, "a number survives the wire");
    check(to_wire(1)[0] == 1, "little-endian");
}

static void datagrams() {
    datagram::Flow flow;
    for (std::uint64_t sequence : {0, 1, 3, 2, 3, 0, 7, 4, 4}) flow.good(sequence, 100, 10 + sequence);
    auto& r = flow.report;
    check(r.received == 6 && r.bytes == 600 && r.reordered == 2 && r.duplicates == 3, "the report of a known sequence");
    check(r.first_ns == 10 && r.last_ns == 14, "the times of the first and the last datagram");
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
    check(!client.answers("12345678", 8) && client.answers(hello.data(), hello.size()), "HELLO is answered by WELCOME");
    check(deliver(hello).empty(), "WELCOME has no answer");
    for (; client.has_more(); ++client.sent) check(deliver(client.next()).empty(), "payload has no answer");
    auto wrong = payload.number(7);
    wrong[20] ^= 1;
    deliver(wrong), deliver("short");
    auto report = deliver(client.question());
    check(client.answers(report.data(), report.size()), "END is answered by a report");
    check(client.report.received == 2 && client.report.damaged == 1 && client.report.last_ns == 5, "with the counters of the flow");
    Result result;
    result.add_flow(5, client.sent_ns, client.report, 64);
    check(result.flow_ns == client.report.last_ns - client.report.first_ns, "a flow lasts from its first datagram to its last");
    datagram::Report good{2, 128, 1, 64, 0, 5, 105};
    check(good.is_possible(2, 64, 100), "a report that a path can cause");
    for (auto wrong : {&datagram::Report::received, &datagram::Report::bytes, &datagram::Report::reordered,
                       &datagram::Report::duplicates, &datagram::Report::damaged, &datagram::Report::first_ns,
                       &datagram::Report::last_ns}) {
        auto report = good;
        report.*wrong = UINT64_MAX;
        check(!report.is_possible(2, 64, 100), "a report that no path can cause");
    }
    check(result.datagrams->lost == 3 && result.bytes == 128 && result.verified == 112, "missing datagrams are lost");
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

// Everything that this end sends now.
static std::string sent_by(Protocol& end) {
    std::string all;
    for (auto piece = end.next(); !piece.empty(); piece = end.next()) all += piece;
    return all;
}

// Runs the two ends until the client is over. Bytes are cut into pieces of `cut` bytes: those from the server, and with
// `both` those from the client.
static void run(Client& client, Protocol& server, std::size_t cut, bool both) {
    auto deliver = [](Protocol& end, const std::string& bytes, std::size_t cut) {
        for (std::size_t i = 0; i < bytes.size(); i += cut) end.receive(std::string_view(bytes).substr(i, cut));
    };
    for (int turns = 0; turns < 100 && !client.over(); ++turns) {
        auto bytes = sent_by(client);
        deliver(server, bytes, both ? cut : bytes.size() + 1);
        deliver(client, sent_by(server), cut);
    }
}

static void streams() {
    Spec spec;
    spec.workload = "stream", spec.size = 1000, spec.bytes = 100'001, spec.options = {{"transfers", "3"}};
    Content content(spec.size);
    Window window(spec);
    window.open();
    for (auto direction : {"client-writes", "client-reads", "both"})
        for (std::size_t cut : {1, 7, 8, 999, 1'000'000}) {
            spec.options["direction"] = direction;
            auto ways = direction == std::string("both") ? 2u : 1u;
            StreamClient client(spec, window, content);
            StreamServer server(spec, content);
            run(client, server, cut, true);
            check(client.over() && client.result.bytes == 3 * ways * spec.bytes, "three transfers, cut anywhere");
            check(client.result.operations == 3 * ways * 101, "the writes of each");
            std::uint64_t times = 0;
            client.result.latency.each([&](std::uint64_t, std::uint64_t count) { times += count; });
            check(times == 3, "each transfer has its time");
            check(!server.end(), "an end of stream has no meaning between transfers");
        }
    spec.options["direction"] = "client-reads";
    StreamClient client(spec, window, content);
    check(client.next().size() == 8 && client.next().empty(), "a client that reads sends a number");
    client.receive(std::string(spec.bytes, '!'));
    check(client.result.bytes == 0 && client.result.errors[std::size_t(Kind::wrong_content)] == 1, "wrong bytes are not counted");

    spec.options["direction"] = "client-writes";
    StreamServer server(spec, content);
    auto number = to_wire(10);
    server.receive({number.data(), number.size()});
    check(!server.end(), "an end of stream inside a transfer truncates it");
}

static void streams_for_a_time() {
    Spec spec;
    spec.workload = "stream", spec.size = 1000, spec.bytes = 2'500, spec.options = {{"transfers", "3"}};
    Content content(spec.size);
    for (auto direction : {"client-writes", "client-reads", "both"})
        for (std::uint64_t duration : {1, 20'000'000}) {
            spec.options["direction"] = direction, spec.duration_ns = duration;
            Window window(spec);
            window.open();
            StreamClient client(spec, window, content);
            StreamServer server(spec, content);
            while (!client.over()) run(client, server, 1000, true);
            auto each = (direction == std::string("both") ? 2u : 1u) * spec.bytes;
            check(client.result.bytes > 0 && client.result.bytes % each == 0, "transfers are whole");
            check((client.result.bytes == each) == (duration == 1), "the time ends their sequence, not the option");
            check(client.result.end_ns >= window.start() + duration, "and no transfer begins after it");
        }
}

static void streams_by_time() {
    Spec spec;
    spec.workload = "stream", spec.size = 1000, spec.duration_ns = 5'000'000;
    Content content(spec.size);
    spec.options["direction"] = "client-writes";
    Window window(spec);
    window.open();
    StreamClient writer(spec, window, content);
    StreamServer server(spec, content);
    server.receive(sent_by(writer));
    check(writer.shuts_down() && !writer.shuts_down(), "when the time is over the client shuts down its sending side, once");
    check(server.next().empty() && server.end() && !server.end(), "which ends the transfer");
    writer.receive(sent_by(server));
    check(writer.over() && writer.result.bytes > 0 && writer.result.bytes % 1000 == 0, "and the server's count is the answer");
    check(server.over(), "after which the server closes");

    spec.options["direction"] = "client-reads";
    Window reading(spec);
    reading.open();
    StreamClient reader(spec, reading, content);
    StreamServer source(spec, content);
    source.receive(reader.next());
    while (!reader.over()) reader.receive(source.next());
    check(reader.result.bytes == reader.result.verified && reader.result.bytes > 0, "a client that reads by time closes");
}

static void exchanges() {
    Spec spec;
    spec.workload = "rr", spec.size = 100, spec.operations = 5;
    for (std::size_t cut : {1, 100}) {
        Window window(spec);
        window.open();
        RrClient client(spec, window);
        Echo echo;
        run(client, echo, cut, false);
        check(client.over() && client.result.operations == 5 && client.result.bytes == 500, "five round trips");
    }
    Window window(spec);
    window.open();
    RrClient client(spec, window);
    auto message = std::string(client.next());
    client.receive(message + "!");
    check(client.result.operations == 0, "more bytes than were sent are not the message");

    CrrClient slot(spec, window);
    int operations = 0;
    for (Echo echo; slot.begin(); slot.closed(), ++operations) run(slot, echo, 7, false);
    check(operations == 4 && slot.result.operations == 4, "crr uses up the operations that are left");
}

// A client whose window is over: an operation was in flight, and ends now. Prints its `done`.
template <class End> static std::string done_after(std::uint64_t duration, std::uint64_t operations, End end) {
    Spec spec;
    spec.workload = "rr", spec.size = 10, spec.duration_ns = duration, spec.operations = operations;
    Clients clients(spec);
    clients.window.open();
    auto& client = *clients.all[0];
    auto message = std::string(client.next());
    client.receive(message);
    client.next();
    end(client, clients.window, message);
    std::fflush(stdout);
    int saved = dup(1), pair[2];
    check(pipe(pair) == 0, "a pipe");
    dup2(pair[1], 1);
    clients.window.done(clients.all);
    dup2(saved, 1);
    close(saved), close(pair[1]);
    std::string line(4'096, '\0');
    line.resize(std::size_t(std::max<ssize_t>(read(pair[0], line.data(), line.size()), 0)));
    close(pair[0]);
    return line;
}

static void windows() {
    constexpr std::uint64_t duration = 20'000'000;
    auto check_late = [](const std::string& line, const std::string& errors) {
        auto done = detail::Json::parse(line);
        check(done["end_ns"].get<std::uint64_t>() - done["start_ns"].get<std::uint64_t>() == duration,
              "a timed window ends at its end");
        check(done["operations"] == 1 && done["bytes"] == 10 && done["in_flight"] == 1, "what was in flight does not count");
        check(done["latency"]["pairs"].size() == 1 && done["errors"].dump() == errors, "nor has it a latency, or an error");
    };
    auto wait = [](Window& window) {
        while (!window.is_over(now_ns() - 1)) {}
    };
    check_late(done_after(duration, UINT64_MAX, [&](Client& client, Window& window, const std::string& message) {
        wait(window), client.receive(message);
    }), "{}");
    check_late(done_after(duration, UINT64_MAX, [&](Client& client, Window& window, const std::string&) {
        wait(window), client.fail(ECONNRESET, false);
    }), "{}");
    check_late(done_after(duration, 2, [&](Client& client, Window& window, const std::string&) {
        int pair[2];
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair of sockets");
        client.watched.watch(pair[0]);
        wait(window);
        Watchdog dog(1'000'000, {&client.watched});
        while (!client.watched.timed_out()) {}
        client.fail(0, true);
        client.watched.release();
        close(pair[0]), close(pair[1]);
    }), R"({"timeout":1})");

    auto used_up = detail::Json::parse(done_after(3'600'000'000'000, 2, [](Client& client, Window&, const std::string& message) {
        client.receive(message);
    }));
    check(used_up["end_ns"].get<std::uint64_t>() - used_up["start_ns"].get<std::uint64_t>() < 3'600'000'000'000,
          "operations that are used up end the window");
}

static void rounds() {
    Spec spec;
    spec.workload = "fanout", spec.size = 10, spec.operations = 3, spec.connections = 4;
    Clients clients(spec);
    clients.rounds.wake = [] {};
    clients.window.open();
    check(clients.all[0]->next().empty(), "nothing is sent before the first round");
    clients.rounds.begin(now_ns());
    for (int turns = 0; turns < 5; ++turns)
        for (auto& each : clients.all) {
            Echo echo;
            echo.receive(each->next());
            each->receive(sent_by(echo));
        }
    Result sum;
    for (auto& each : clients.all) sum.merge(each->result);
    check(clients.all[1]->over() && sum.operations == 3 && sum.bytes == 3 * 4 * 10, "three rounds over four connections");

    Clients broken(spec);
    broken.rounds.wake = [] {};
    broken.window.open();
    broken.rounds.begin(now_ns());
    for (auto& each : broken.all) each->next(), each->fail(ECONNRESET, false);
    Result failed;
    for (auto& each : broken.all) failed.merge(each->result);
    check(failed.errors[std::size_t(Kind::reset)] == 1, "a round fails once");
}

static int status_of(const std::string& text) {
    std::string name = "test";
    char* argv[] = {&name[0], const_cast<char*>(text.c_str())};
    return start(2, argv, {"test", "0", {{"client", "none", "dispatch", [](const Spec&) {}}}, {"own-option"}});
}

static void specs() {
    auto with = [](const std::string& more) {
        return R"({"contract":3,"role":"client","layer":"none","workload":"dispatch")" + more + "}";
    };
    check(status_of(with("")) == 0, "a good spec");
    check(status_of(with(R"(,"options":{"transfers":"3","own-option":"1","search":"x"})")) == 0, "known options");
    check(status_of(with(R"(,"options":{"transfer":"3"})")) == 2, "an unknown option is refused");
    check(status_of(with(R"(,"conections":3)")) == 2, "an unknown field is refused");
    check(status_of(with(R"(,"rate":3)")) == 127, "no open loop");
    check(status_of(R"({"contract":1,"role":"client","layer":"none","workload":"dispatch"})") == 2, "another contract");
    check(status_of(R"({"contract":3,"role":"client","layer":"tcp","workload":"dispatch"})") == 127, "another layer");
    try {
        detail::need_known("options.", "transfer", detail::option_names);
        check(false, "need_known throws");
    } catch (const BadSpec& e) {
        check(e.what() == std::string(R"("options.transfer" is not known; nearest: "transfers")"), e.what());
    }
    try {
        detail::need_known("options.", "zzzzzz", {"a", "b"});
        check(false, "need_known throws");
    } catch (const BadSpec& e) {
        check(e.what() == std::string(R"("options.zzzzzz" is not known; known: a, b)"), e.what());
    }
}

static void watchdog() {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair of sockets");
    Watched still;
    still.watch(pair[0]);
    Watchdog dog(1'000'000, {&still});
    char byte;
    check(read(pair[0], &byte, 1) == 0 && still.timed_out(), "a stalled connection is broken");
    close(pair[0]), close(pair[1]);
}

int main() {
    content();
    datagrams();
    frames();
    histogram();
    requests();
    answers();
    streams();
    streams_for_a_time();
    streams_by_time();
    exchanges();
    rounds();
    windows();
    specs();
    watchdog();
    std::puts(failures == 0 ? "sdk/cpp: every check passed" : "sdk/cpp: checks failed");
    return failures == 0 ? 0 : 1;
}
