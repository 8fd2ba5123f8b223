// All connections of a client, and the client of HTTP beside a server in the same loop.
#pragma once

#include "http.hpp"
#include "protocol.hpp"

namespace linerate {

// Requests of a page, one after the other on a connection that stays open.
class HttpClient : public RrClient {
public:
    using RrClient::RrClient;

    std::string_view next() override { return RrClient::next().empty() ? std::string_view() : request; }
    void receive(std::string_view bytes) override {
        watched.move();
        received_ += bytes;
        auto answer = http::parse_answer(received_);
        if (answer.state == http::Answer::incomplete) return;
        bool same = answer.body == message_;
        received_.clear(), in_flight_ = false;
        if (answer.state == http::Answer::good) return back(same, now_ns());
        over_ = true;
        count(answer.state == http::Answer::malformed ? Kind::malformed : Kind::wrong_status);
    }
    bool is_partial() const override { return !received_.empty(); }

private:
    static constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::string received_;
};

// All connections of a client, with their common state.
class Clients {
public:
    explicit Clients(const Spec& spec)
        : spec(spec), window(spec), content(spec.workload == "stream" ? spec.size : 0), rounds(window, spec.connections, spec.size) {
        for (std::uint32_t i = 0; i < spec.connections; ++i) all.push_back(make());
    }

    const Spec& spec;
    Window window;
    Content content;
    Rounds rounds;
    std::vector<std::shared_ptr<Client>> all;

    std::unique_ptr<Watchdog> watch() {
        std::vector<Watched*> watched;
        for (auto& each : all) watched.push_back(&each->watched);
        return std::make_unique<Watchdog>(spec.timeout_ns, watched);
    }

private:
    std::shared_ptr<Client> make() {
        if (spec.workload == "stream") return std::make_shared<StreamClient>(spec, window, content);
        if (spec.layer == "http") return std::make_shared<HttpClient>(spec, window);
        if (spec.workload == "crr") return std::make_shared<CrrClient>(spec, window);
        if (spec.workload == "fanout") return std::make_shared<FanoutClient>(spec, rounds);
        return std::make_shared<RrClient>(spec, window);
    }
};

} // namespace linerate
