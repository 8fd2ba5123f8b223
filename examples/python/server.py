"""A shop's list of items as JSON, by asyncio. It listens on $PORT."""

import asyncio
import json
import os


def items():
    return [{"id": n, "name": f"item {n}", "price": n * 1.5} for n in range(1, 21)]


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.received = b""

    def data_received(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, self.received = self.received.split(b"\r\n\r\n", 1)
            path = head.split(b" ", 2)[1]
            status, body = ("200 OK", items()) if path == b"/api/items" else ("404 Not Found", {})
            body = json.dumps(body).encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def main():
    port = int(os.environ.get("PORT", "8080"))
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main())
