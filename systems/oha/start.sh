#!/bin/sh
# Ten thousand connections are more descriptors than most shells allow.
ulimit -n 20000
exec "$(dirname "$0")/bin/oha" "$@"
