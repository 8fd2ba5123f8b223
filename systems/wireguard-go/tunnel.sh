#!/bin/sh
# tunnel.sh PROGRAM DEVICE ADDRESS CONFIG LISTEN ARGUMENTS: configures the device as soon as the program has made it, then
# prints that the tunnel is ready. tunnel.sh PROGRAM --version: its version. PROGRAM is a file beside this one.
set -eu
program=$(dirname "$0")/$1
[ "$2" = --version ] && exec "$program" --version
device=$2 address=$3 config=$4 listen=$5
shift 5
configure() {
    until [ -S "/run/wireguard/$device.sock" ]; do sleep 0.01; done
    wg setconf "$device" "$config"
    ip address add "$address" dev "$device"
    # 1,500 without the headers of IP, UDP and WireGuard, as wg-quick(8) sets it.
    ip link set "$device" mtu 1420 up
    echo "{\"event\":\"ready\",\"address\":\"$listen\"}"
}
configure &
exec "$program" "$@" "$device"
