// The tests of linerate/http.hpp and of its client, a part of test.cpp.
static http::Request parse(std::string_view input) { return http::parse(input); }

static void requests() {
    std::string_view good = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nGET";
    check(parse(good).state == http::Request::good && parse(good).length == good.size() - 3 && parse(good).keep, "a GET");
    for (std::size_t cut = 0; cut < good.size() - 3; ++cut)
        check(parse(good.substr(0, cut)).state == http::Request::incomplete, "the beginning of a GET");
    check(!parse("GET / HTTP/1.0\r\n\r\n").keep, "1.0 closes");
    check(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep, "1.0 with keep-alive stays open");
    check(!parse("GET / HTTP/1.1\r\nconnection: TE, Close\r\n\r\n").keep, "1.1 with close closes");
    for (std::string_view bad : {"POST / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01", "GET  HTTP/1.1\r\n\r\n",
             "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
             "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\na b: x\r\n\r\n"})
        check(parse(bad).state == http::Request::bad, bad.data());
    check(parse(std::string("GET /") + std::string(http::buffer, 'a')).state == http::Request::bad, "a head without end");
}

static void answers() {
    Spec spec;
    spec.layer = "http", spec.workload = "rr", spec.size = 13, spec.operations = 3;
    for (std::size_t cut : {1, 1'000}) {
        Clients clients(spec);
        clients.window.open();
        auto& client = *clients.all[0];
        while (!client.next().empty()) {
            auto answer = http::Answers(spec.size).keep;
            for (std::size_t i = 0; i < answer.size(); i += cut) client.receive(std::string_view(answer).substr(i, cut));
        }
        check(client.over() && client.result.operations == 3 && client.result.bytes == 39, "three pages, cut anywhere");
    }
    auto failed = [&spec](const std::string& answer, Kind kind) {
        Clients clients(spec);
        clients.window.open();
        auto& client = *clients.all[0];
        client.next(), client.receive(answer);
        check(client.result.operations == 0 && client.result.errors[std::size_t(kind)] == 1, answer.c_str());
    };
    failed("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", Kind::wrong_status);
    failed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", Kind::wrong_content);
    for (auto text : {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/2 200"})
        failed(text, Kind::malformed);
}
