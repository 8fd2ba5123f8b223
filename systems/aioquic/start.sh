#!/bin/sh
# The packages are in the folder of this file.
here=$(dirname "$0")
export PYTHONPATH="$here/packages" PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/main.py" "$@"
