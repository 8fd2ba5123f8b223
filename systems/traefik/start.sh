#!/bin/bash
# start.sh THREADS ADDRESS ARGUMENTS: the number of threads that run Go code is an environment variable. Traefik listens
# before it has loaded its routes, and answers 404 meanwhile, so this prints when it is ready. ADDRESS -: it does not.
export GOMAXPROCS=$1
address=$2
shift 2

has_routes() {
    exec 3<>"/dev/tcp/${address%:*}/${address##*:}" || return
    printf 'GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$address" >&3
    read -r _ status _ <&3
    exec 3>&-
    [[ -n $status && $status != 404 ]]
}

wait_for_routes() {
    for _ in {1..200}; do
        if has_routes 2>/dev/null; then
            printf '{"event":"ready","address":"%s"}\n' "$address"
            return
        fi
        sleep 0.05
    done
}

[[ $address == - ]] || wait_for_routes &
exec "${0%/*}/traefik" "$@"
