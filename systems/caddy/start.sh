#!/bin/sh
# start.sh THREADS ARGUMENTS: the number of threads that run Go code is an environment variable.
GOMAXPROCS=$1
export GOMAXPROCS
shift
exec "$(dirname "$0")/caddy" "$@"
