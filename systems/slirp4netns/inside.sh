# In the new namespace, where nginx has uid 0: waits for slirp4netns's device.
until ip link show tap0 2> /dev/null | grep -q LOWER_UP; do sleep 0.01; done
exec nginx -p {{ dir }} -c {{ dir }}/inside.conf -g 'user root;'
