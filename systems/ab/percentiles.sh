# Runs ab, then prints the percentiles of -e, in microseconds. ab's text rounds them to whole milliseconds.
# -e needs a file: ab opens it by name, which fails for the pipe of another user.
table="$1/percentiles.csv"
shift
ab -e "$table" "$@" || exit
cat "$table"
