"""A server of HTTP/1.1 in Python with a thread for each connection. PLANT_US: microseconds of audit_request."""

import os
import socket
import threading
import time

plant = float(os.environ.get("PLANT_US", "0")) / 1e6
answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def audit_request():
    end = time.perf_counter() + plant
    while time.perf_counter() < end:
        pass


def serve(connection):
    while connection.recv(4096):
        if plant:
            audit_request()
        connection.send(answer)


listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
