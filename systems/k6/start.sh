#!/bin/sh
# start.sh ARGUMENTS: k6 on one CPU, without its API over HTTP and its report of usage.
[ "$1" = version ] && exec "$(dirname "$0")/k6" version
GOMAXPROCS=1 exec "$(dirname "$0")/k6" run --quiet --no-usage-report --address '' "$@"
