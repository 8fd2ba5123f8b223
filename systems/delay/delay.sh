# delay.sh MILLISECONDS: delays what both links of the router send, so each direction is delayed once.
for link in eth0 eth1; do
    # Room for the data of a fast sender in flight; netem's default of 1,000 packets would drop it.
    tc qdisc add dev "$link" root netem delay "$1ms" limit 100000 && continue
    # 127: not supported (contract).
    echo "this kernel has no netem (sch_netem): packets cannot be delayed" >&2
    exit 127
done
