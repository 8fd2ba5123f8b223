#!/bin/sh
# start.sh FOLDER URL ATTACK_ARGUMENTS: attacks, then prints the report, with the duration in seconds as well.
vegeta=$(dirname "$0")/vegeta
# Its own -version is empty in a build by `go install`; the program contains the versions of its modules.
[ "$1" = -version ] && exec grep -aom1 'tsenart/vegeta/v12[[:space:]]v[0-9.]*' "$vegeta"
results=$1/results
url=$2
shift 2
ulimit -n 20000
echo "GET $url" | "$vegeta" -cpus 1 attack -output "$results" "$@" || exit
report=$("$vegeta" -cpus 1 report -type json "$results") || exit
echo "$report" | tr ',{}' '\n' | awk -F: '
    $1 == "\"duration\"" { time += $2 }
    $1 == "\"wait\"" { time += $2 }
    END { printf "seconds %.6f\n", time / 1e9 }'
echo "$report"
