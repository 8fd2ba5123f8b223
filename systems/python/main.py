"""asyncio or uvloop as a system of linerate (sdk/CONTRACT.md): main.py SPEC.

spec -> http(): an ASGI application on uvicorn | echo(): a Protocol -> "ready" on stdout
client's spec -> drive(); with "ends" on the loop of one of these servers -> "done" on stdout
"""

import asyncio
import os
import sys
import time

import linerate
import uvicorn
import uvloop

VERSIONS = f"uvicorn {uvicorn.__version__}, uvloop {uvloop.__version__}, Python {sys.version.split()[0]}"
PROGRAM = {
    "name": "python", "version": VERSIONS, "roles": ["client", "server"], "layers": ["http", "tcp"],
    "workloads": ["crr", "rr"], "ends": ["one-loop"],
}
LONGEST_MESSAGE = 65_536


class Echo(asyncio.Protocol):
    """Returns what it receives. A peer that does not read is not read from."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)

    def pause_writing(self):
        self.transport.pause_reading()

    def resume_writing(self):
        self.transport.resume_reading()


async def echo(spec):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, *linerate.address(spec["listen"]), backlog=linerate.BACKLOG)
    await listening(spec, server.sockets[0])
    await server.serve_forever()


class HttpServer(uvicorn.Server):
    """Prints "ready" when it listens, or runs its client."""

    def __init__(self, config, spec):
        super().__init__(config)
        self.spec = spec

    async def startup(self, sockets=None):
        await super().startup(sockets)
        await listening(self.spec, self.servers[0].sockets[0])


async def listening(spec, socket):
    """A server listens on this socket: it is alone, or beside its client."""
    if spec["role"] == "client":
        asyncio.get_running_loop().create_task(drive(spec, socket.getsockname()[:2]))
    else:
        linerate.end_on_sigterm()
        linerate.emit_ready(socket)


class Exchanges(asyncio.Protocol):
    """One connection of a client: a message out and the same bytes back, or a request and the page."""

    REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def __init__(self, spec, tally):
        self.message, self.is_http, self.tally = linerate.page(spec["size"]), spec["layer"] == "http", tally
        self.received, self.over, self.moved = b"", asyncio.get_running_loop().create_future(), 0

    def connection_made(self, transport):
        self.transport = transport

    def begin(self, now):
        self.began = now
        if self.tally.begin(now):
            self.transport.write(self.REQUEST if self.is_http else self.message)
        else:
            self.end()

    def data_received(self, data):
        self.received += data
        answer = self.received
        if self.is_http:
            try:
                answer = body(answer)
            except ValueError as error:
                return self.end(str(error))
        if answer is None or len(answer) < len(self.message):
            return
        if answer != self.message:
            return self.end("wrong_content")
        now = time.monotonic_ns()
        self.received, self.moved = b"", self.moved + 1
        self.tally.succeed(1, len(self.message), self.began, now)
        self.begin(now)

    def connection_lost(self, error):
        self.end("reset" if error else "truncated" if self.received else "empty_reply")

    def end(self, kind=None):
        if self.over.done():
            return
        if kind:
            self.tally.fail(kind)
        self.over.set_result(None)
        self.transport.close()


def body(answer):
    """The body of an answer; None while it has not arrived. ValueError: the kind of failure."""
    head, separator, rest = answer.partition(b"\r\n\r\n")
    if not separator:
        return None
    status, *fields = head.split(b"\r\n")
    if not status.startswith(b"HTTP/1.1 "):
        raise ValueError("malformed")
    if not status.startswith(b"HTTP/1.1 200 "):
        raise ValueError("wrong_status")
    for field in fields:
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length" and value.strip().isdigit():
            return rest if len(rest) >= int(value) else None
    raise ValueError("malformed")


async def drive(spec, address):
    loop, tally = asyncio.get_running_loop(), linerate.Tally(spec)
    made = []
    for _ in range(spec["connections"]):
        try:
            made.append((await loop.create_connection(lambda: Exchanges(spec, tally), *address))[1])
        except OSError as error:
            tally.fail("connect_refused" if isinstance(error, ConnectionRefusedError) else "connect_failed")
    # A turn of the loop later the server has the last connection as well.
    await asyncio.sleep(0.001)
    tally.open()
    for connection in made:
        connection.begin(tally.start)
    watch = [loop.create_task(watched(connection, spec["timeout_ns"])) for connection in made]
    await asyncio.gather(*(connection.over for connection in made))
    for each in watch:
        each.cancel()
    linerate.emit(**tally.done())
    os._exit(0)


async def watched(connection, timeout_ns):
    """Ends a connection without progress for the timeout, at most an eighth of it late."""
    still, seen = 0, -1
    while still <= 8:
        still, seen = still + 1 if seen == connection.moved else 0, connection.moved
        await asyncio.sleep(timeout_ns / 8e9)
    connection.end("timeout")


async def http(spec):
    page = linerate.page(spec["size"])
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(page)).encode())]

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": page})

    host, port = linerate.address(spec["listen"])
    config = uvicorn.Config(application, host, port, http="httptools", backlog=linerate.BACKLOG, access_log=False,
                            lifespan="off", log_level="warning")
    await HttpServer(config, spec).serve()


def check(spec):
    if spec["role"] == "server":
        return
    if spec["workload"] != "rr":
        raise linerate.Refusal(linerate.UNSUPPORTED, "a client that connects again")
    if not 1 <= spec["size"] <= LONGEST_MESSAGE or not (spec.get("operations") or spec.get("duration_ns")):
        raise linerate.Refusal(linerate.BAD_SPEC, "size, operations or duration is missing or out of range")
    if "ends" in spec["options"]:
        spec["listen"] = "127.0.0.1:0"


async def run(spec):
    if "listen" in spec:
        await (http if spec["layer"] == "http" else echo)(spec)
    else:
        await drive(spec, linerate.address(spec["connect"]))


if __name__ == "__main__":
    linerate.start(PROGRAM, run, check)
