// An io_context as the loop of `dispatch` (sdk/cpp/linerate/posting.hpp). Each style adds its own post().
#pragma once

#include "net.hpp"
#include "linerate/posting.hpp"

#include <optional>

class ContextLoop {
public:
    explicit ContextLoop(std::uint32_t threads) : context_(int(threads)) {}

    void run() { context_.run(); }
    void restart() { context_.restart(); }
    void hold() { guard_.emplace(context_.get_executor()); }
    void release() { guard_.reset(); }

protected:
    net::io_context context_;

private:
    std::optional<net::executor_work_guard<net::io_context::executor_type>> guard_;
};
