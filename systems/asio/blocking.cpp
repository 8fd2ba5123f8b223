// The program of asio-sync.
#define LINERATE_IMPLEMENTATION
#include "conversations.hpp"
#include "version.hpp"

int main(int argc, char** argv) { return linerate::start(argc, argv, {LINERATE_VARIANT, asio_version(), conversations()}); }
