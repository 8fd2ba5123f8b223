# Runs h2load with a log of its requests, then prints the percentiles of their times in microseconds.
log="$1/requests.log"
shift
ulimit -n 20000
h2load --log-file="$log" "$@" || exit
cut -f 3 "$log" | sort -n | awk '
    { time[NR] = $1; sum += $1 }
    END {
        if (NR == 0) exit 1
        printf "mean,%.1f\n", sum / NR
        for (percent = 50; percent <= 99; percent++) print percent "," time[int((NR - 1) * percent / 100) + 1]
    }'
