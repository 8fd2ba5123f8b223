# delay.sh MILLISECONDS: on the way out of both of the router's links, so each direction is delayed once.
for link in eth0 eth1; do
    # The queue holds what a fast sender has in flight meanwhile; netem's own 1,000 packets would drop it.
    tc qdisc add dev "$link" root netem delay "$1ms" limit 100000 && continue
    # 127 is the contract's "this I do not support".
    echo "this kernel has no netem (sch_netem), so nothing can be delayed" >&2
    exit 127
done
