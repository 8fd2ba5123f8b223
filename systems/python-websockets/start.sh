#!/bin/sh
# Packages and OpenSSL's configuration are in the folder of this file.
here=$(dirname "$0")
export PYTHONPATH="$here/packages" PYTHONDONTWRITEBYTECODE=1 OPENSSL_CONF="$here/openssl.cnf"
exec python3 "$here/main.py" "$@"
