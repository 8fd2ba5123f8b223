"""Servers on asyncio or uvloop as a system of linerate (sdk/CONTRACT.md): main.py SPEC.

spec -> http(): an ASGI application on uvicorn | echo(): a Protocol -> "ready" on stdout
"""

import asyncio
import sys

import linerate
import uvicorn
import uvloop

VERSIONS = f"uvicorn {uvicorn.__version__}, uvloop {uvloop.__version__}, Python {sys.version.split()[0]}"
PROGRAM = {
    "name": "python", "version": VERSIONS, "roles": ["server"], "layers": ["http", "tcp"], "workloads": ["crr", "rr"],
}


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
    linerate.end_on_sigterm()
    linerate.emit_ready(server.sockets[0])
    await server.serve_forever()


class HttpServer(uvicorn.Server):
    """Prints "ready" when it listens."""

    async def startup(self, sockets=None):
        await super().startup(sockets)
        linerate.end_on_sigterm()
        linerate.emit_ready(self.servers[0].sockets[0])


async def http(spec):
    page = linerate.page(spec["size"])
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(page)).encode())]

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": page})

    host, port = linerate.address(spec["listen"])
    config = uvicorn.Config(application, host, port, http="httptools", backlog=linerate.BACKLOG, access_log=False,
                            lifespan="off", log_level="warning")
    await HttpServer(config).serve()


async def run(spec):
    await (http if spec["layer"] == "http" else echo)(spec)


if __name__ == "__main__":
    linerate.start(PROGRAM, run)
