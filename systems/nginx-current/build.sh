#!/bin/sh
# Usage: build.sh OUT. Builds the nginx whose source is in OUT/vendor as OUT/nginx, and removes the source.
set -eu
cd "$1/vendor/nginx-src/nginx"
# -O2 as in Debian's package; nginx's own default is -O.
auto/configure --with-cc-opt=-O2 --with-threads --with-http_ssl_module --with-http_v2_module --with-http_v3_module \
    --with-stream > "$1/log"
make -j "$(nproc)" >> "$1/log"
cp objs/nginx "$1/nginx"
rm -rf "$1/vendor"
