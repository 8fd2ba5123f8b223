# As a setup step, then as the relay. @BASE@ is the test's folder on the host.
dir={{ dir }}
wrong=$(cat "$dir/wrong" 2> /dev/null)
number=0
# Of its own program; a setup step has another one.
programs=$2

must_fail() {
    number=$((number + 1)) name=$1
    shift
    ("$@") > /dev/null 2>&1 && wrong="$wrong [$name]"
}

must_work() {
    number=$((number + 1)) name=$1
    shift
    ("$@") > /dev/null 2>&1 || wrong="$wrong [not: $name]"
}

write() {
    echo changed > "$1"
}

link() {
    ln -sfn "@BASE@/user" "$dir/link" && cat "$dir/link/secret"
}

# The processes of another role: linerate's server.
servers() {
    grep -lsa 'linerate-loa[d]' /proc/[0-9]*/cmdline | cut -d/ -f3
}

signal_a_server() {
    for process in $(servers); do kill -0 "$process" && return 0; done
    return 1
}

enter_a_server() {
    for process in $(servers); do ls "/proc/$process/root/" && return 0; done
    return 1
}

# The folder above its program has nothing else.
see_others() {
    ls -A @BASE@ | grep -v '^programs$'
}

a_device() {
    [ -e /dev/kmsg ] || [ -e /dev/pts/0 ] || [ -e /dev/vda ] || [ -e /dev/sda ]
}

gain_a_user() {
    user=$("$programs/other-id" -u) && [ "$user" != "$(id -u)" ]
}

must_fail "read the home" cat @BASE@/user/secret
must_fail "write the home" write @BASE@/user/new
must_fail "list the home" ls @BASE@/user
must_fail "read the cache" cat @BASE@/cache/linerate/other
must_fail "list results" ls @BASE@/out
must_fail "see other files of the host" see_others
must_fail "write the pages" write {{ docroot }}/index.html
must_fail "add a page" write {{ docroot }}/new
must_fail "write /etc" write /etc/linerate-test
must_fail "write /usr" write /usr/linerate-test
must_fail "write the root folder" write /linerate-test
must_fail "write its program" write "$programs/new"
must_fail "read through a link" link
must_fail "see the folders of other roles" ls /run/linerate/server
must_fail "open devices" a_device
must_fail "see processes of the host" grep -qs '@MAR[K]@' /proc/[0-9]*/cmdline
must_fail "enter the root folder of the agent" ls /proc/1/root/
must_fail "open the host's network" bash -c 'exec 3<> /dev/tcp/127.0.0.1/@PORT@'
must_fail "gain the rights of a program" gain_a_user
must_fail "mount" mount -t tmpfs none /tmp
must_work "no_new_privs" grep -q 'NoNewPrivs:.1' /proc/self/status
must_work "write its folder" write "$dir/own"
must_work "write /tmp" write /tmp/own
must_work "write /var/tmp" write /var/tmp/own
must_work "write /dev/shm" write /dev/shm/own
must_work "write /run" write /run/own
must_work "write /dev/null" write /dev/null
must_work "read the page" cat {{ docroot }}/index.html
must_work "read /etc" cat /etc/passwd
must_work "run a program" id

if [ "$1" = setup ]; then
    echo "$wrong" > "$dir/wrong"
    echo kept > /tmp/of-setup
    exit 0
fi
must_work "run its program" "$programs/other-id"
must_work "keep /tmp from setup to start" cat /tmp/of-setup
must_work "find the server's process" [ -n "$(servers)" ]
if [ "@SEPARATE@" = true ]; then
    must_fail "signal another role" signal_a_server
    must_fail "enter the root folder of another role" enter_a_server
fi
echo "tried $number, wrong:$wrong." >&2
exit 1
