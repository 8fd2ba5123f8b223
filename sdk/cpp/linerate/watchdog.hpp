// Breaks connections of a client that make no progress within the timeout. shutdown(2) on the socket ends whatever call or
// handler waits for it, in any library. One thread for all connections, in place of a timer for each operation.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace linerate {

// One connection. Only the thread of the connection calls move().
class Watched {
public:
    void move() { moved_.store(moves() + 1, std::memory_order_relaxed); }
    std::uint64_t moves() const { return moved_.load(std::memory_order_relaxed); }
    bool timed_out() const { return timed_out_; }
    // From before connect(2) on. The socket stays open until release().
    void watch(int socket) {
        std::lock_guard lock(mutex_);
        socket_ = socket, still_ = 0, timed_out_ = false;
    }
    void release() {
        std::lock_guard lock(mutex_);
        socket_ = -1;
    }

private:
    friend class Watchdog;
    void check(int limit) {
        std::lock_guard lock(mutex_);
        auto now = moves();
        still_ = socket_ >= 0 && now == seen_ ? still_ + 1 : 0;
        seen_ = now;
        if (still_ <= limit || timed_out_) return;
        timed_out_ = true;
        shutdown(socket_, SHUT_RDWR);
    }

    std::atomic<std::uint64_t> moved_{0};
    std::atomic<bool> timed_out_{false};
    std::mutex mutex_;
    int socket_ = -1, still_ = 0;
    std::uint64_t seen_ = 0;
};

class Watchdog {
public:
    // A stalled connection is broken at most an eighth of the timeout late.
    Watchdog(std::uint64_t timeout_ns, std::vector<Watched*> all)
        : thread_([this, step = std::chrono::nanoseconds(timeout_ns / checks + 1), all = std::move(all)] {
              std::unique_lock lock(mutex_);
              while (!wake_.wait_for(lock, step, [this] { return over_; }))
                  for (auto* each : all) each->check(checks);
          }) {}
    ~Watchdog() {
        {
            std::lock_guard lock(mutex_);
            over_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

private:
    static constexpr int checks = 8;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool over_ = false;
    std::thread thread_;
};

} // namespace linerate
