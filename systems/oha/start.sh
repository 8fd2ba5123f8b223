#!/bin/sh
# 10,000 connections need more descriptors than most shells allow.
ulimit -n 20000
exec "$(dirname "$0")/bin/oha" "$@"
