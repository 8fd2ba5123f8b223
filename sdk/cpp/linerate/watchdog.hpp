// Breaks connections of a client that have not moved for the timeout: shutdown(2) on the socket ends whatever the program
// waits for, blocking or not, in any library. One thread for all of them, in place of a timer for each operation.
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

// One connection. The program's own thread says that it moves; nobody else writes that counter.
class Watched {
public:
    void move() { moved_.store(moved_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    bool timed_out() const { return timed_out_; }
    // From connect(2) on. The socket stays open until release().
    void hold(int socket) {
        std::lock_guard lock(mutex_);
        socket_ = socket;
    }
    void release() { hold(-1); }

private:
    friend class Watchdog;
    void look(int patience) {
        std::lock_guard lock(mutex_);
        auto now = moved_.load(std::memory_order_relaxed);
        still_ = socket_ >= 0 && now == seen_ ? still_ + 1 : 0;
        seen_ = now;
        if (still_ <= patience || timed_out_) return;
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
    // A connection that stands still is broken at most an eighth of the timeout late.
    Watchdog(std::uint64_t timeout_ns, std::vector<Watched*> all)
        : thread_([this, step = std::chrono::nanoseconds(timeout_ns / looks + 1), all = std::move(all)] {
              std::unique_lock lock(mutex_);
              while (!wake_.wait_for(lock, step, [this] { return over_; }))
                  for (auto* each : all) each->look(looks);
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
    static constexpr int looks = 8;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool over_ = false;
    std::thread thread_;
};

} // namespace linerate
