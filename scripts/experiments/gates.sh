# shellcheck shell=sh
# Gates and their exit statuses. Sourced by experiments.

# OUT ARGUMENTS...: one gate; adds its exit status to $statuses and its seconds to $spent. LINERATE_GATE has more options.
gate() {
    gate_out=$1 gate_start=$(date +%s) gate_status=0
    shift
    # shellcheck disable=SC2086 # a list of options
    linerate gate "$@" --quiet ${LINERATE_GATE:-} --out "$gate_out" > "$gate_out.log" 2>&1 || gate_status=$?
    statuses="${statuses:-} $gate_status" spent=$((${spent:-0} + $(date +%s) - gate_start))
}

# Prints how often each exit status was seen, and the mean time.
gate_statuses() {
    echo "$statuses" | tr ' ' '\n' | sort -n | uniq -c | awk -v spent="$spent" '
        NF == 2 { printf "%s%s x status %s", n ? ", " : "", $1, $2; n += $1 }
        END { printf ", %d s", spent / n }'
}
