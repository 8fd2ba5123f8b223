#include "version.hpp"

#ifdef LINERATE_STANDALONE
#include <asio/version.hpp>
std::string asio_version() {
    return std::to_string(ASIO_VERSION / 100'000) + "." + std::to_string(ASIO_VERSION / 100 % 1'000) + "." +
           std::to_string(ASIO_VERSION % 100);
}
#else
#include <boost/asio/version.hpp>
#include <boost/version.hpp>
std::string asio_version() {
    return std::to_string(BOOST_ASIO_VERSION / 100'000) + "." + std::to_string(BOOST_ASIO_VERSION / 100 % 1'000) + "." +
           std::to_string(BOOST_ASIO_VERSION % 100) + " (Boost " + std::to_string(BOOST_VERSION / 100'000) + "." +
           std::to_string(BOOST_VERSION / 100 % 1'000) + ")";
}
#endif
