# ab, and behind its text the percentiles that -e writes, in microseconds: the text rounds them to whole milliseconds.
# A pipe will not do for -e: ab opens its file by name, which it may not where the pipe is another user's.
table="$1/percentiles.csv"
shift
ab -e "$table" "$@" || exit
cat "$table"
