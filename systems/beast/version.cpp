#include "version.hpp"

#include <boost/beast/version.hpp>
#include <boost/version.hpp>

std::string beast_version() {
    return std::to_string(BOOST_BEAST_VERSION) + " (Boost " + std::to_string(BOOST_VERSION / 100'000) + "." +
           std::to_string(BOOST_VERSION / 100 % 1'000) + ")";
}
