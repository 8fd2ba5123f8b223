// A server of HTTP/1.1 in C++ with a thread for each connection. PLANT_US: microseconds of shop::Audit::request.
#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
namespace shop {
class Audit {
public:
    explicit Audit(long us) : time(us) {}
    __attribute__((noinline)) void request(const std::string &) const {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {}
    }
private:
    std::chrono::microseconds time;
};
void serve(int fd, long plant) {
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    std::string request(4096, '\0');
    const Audit audit(plant);
    while (read(fd, request.data(), request.size()) > 0) {
        if (plant) audit.request(request);
        if (write(fd, answer.data(), answer.size()) < 0) break;
    }
    close(fd);
}
}
int main() {
    const char *port = std::getenv("PORT"), *plant = std::getenv("PLANT_US");
    sockaddr_in at = {};
    at.sin_family = AF_INET, at.sin_port = htons(port ? atoi(port) : 8080), at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 512)) return 1;
    for (;;) {
        int fd = accept(listener, nullptr, nullptr);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        std::thread(shop::serve, fd, plant ? atol(plant) : 0).detach();
    }
}
