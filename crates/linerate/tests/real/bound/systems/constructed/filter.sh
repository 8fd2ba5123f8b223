# filter.sh RULES: no packet matches, so each is compared with all rules.
{
    echo "table ip linerate {"
    echo "    chain forward {"
    echo "        type filter hook forward priority filter;"
    for rule in $(seq "$1"); do
        echo "        ip saddr 192.0.2.$((rule % 250 + 1)) tcp dport $rule drop"
    done
    echo "    }"
    echo "}"
} | nft -f -
