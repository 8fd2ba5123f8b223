#!/bin/sh
# Classes and libraries are in the folder of this file.
here=$(dirname "$0")
exec java -cp "$here/classes:$here/lib/*" Main "$@"
