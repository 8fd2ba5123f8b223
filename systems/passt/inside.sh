# In pasta's namespace, where nginx has uid 0. 0A is a socket that listens (proc_pid_net(5), tcp).
nginx -p {{ dir }} -c {{ dir }}/server.conf -g 'user root;' &
until grep -q ' 0A ' /proc/net/tcp; do sleep 0.01; done
echo '{"event":"ready","address":"{{ listen.address }}"}'
wait
