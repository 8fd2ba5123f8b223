set -eu
# The namespace has slirp4netns's address, 10.0.2.100, in place of the one outside.
sed 's/listen .*/listen {{ listen.port }} backlog=511;/' {{ dir }}/server.conf > {{ dir }}/inside.conf
unshare --user --map-root-user --net sh {{ dir }}/inside.sh &
inside=$!
until [ "$(readlink "/proc/$inside/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
slirp4netns --configure --mtu=65520 --api-socket {{ dir }}/api "$inside" tap0 > {{ dir }}/slirp4netns.log 2>&1 &
# 0A is a socket that listens (proc_pid_net(5), tcp).
until [ -S {{ dir }}/api ] && grep -q ' 0A ' "/proc/$inside/net/tcp"; do sleep 0.01; done
echo '{"execute":"add_hostfwd","arguments":{"proto":"tcp","host_addr":"{{ listen.ip }}","host_port":{{ listen.port }},"guest_port":{{ listen.port }}}}' |
    socat - UNIX-CONNECT:{{ dir }}/api >&2
echo '{"event":"ready","address":"{{ listen.address }}"}'
wait "$inside"
