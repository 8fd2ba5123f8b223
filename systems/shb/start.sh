#!/bin/sh
# shb has no option for its version; cargo keeps that of what it installed. 10,000 connections need more descriptors
# than most shells allow.
here=$(dirname "$0")
if [ "${1:-}" = --version ]; then
    exec sed -n 's/^"shb \([^ ]*\) .*/\1/p' "$here/.crates.toml"
fi
ulimit -n 20000
exec "$here/bin/shb" "$@"
