"""Python's websockets as a system of linerate (sdk/CONTRACT.md): main.py SPEC.

spec -> server() | client() on one event loop, one coroutine for each connection -> JSON lines on stdout
"""

import asyncio
import ssl
import sys
import time

import websockets
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

import linerate
from linerate import BAD_SPEC, LONGEST_WRITE, PERIOD, UNSUPPORTED, Content, Refusal, Tally, page

PROGRAM = {
    "name": "python-websockets", "version": f"{websockets.__version__} (Python {sys.version.split()[0]})",
    "roles": ["client", "server"], "layers": ["websocket", "wss"], "workloads": ["rr", "stream"],
}
LONGEST_MESSAGE = 16 << 20
# The library's defaults, except: no compression, the contract's limit of messages, no pings.
SETTINGS = {"compression": None, "max_size": LONGEST_MESSAGE, "ping_interval": None}


def check(spec):
    is_client, direction = spec["role"] == "client", spec["options"].get("direction")
    if spec["workload"] == "stream" and direction == "both":
        raise Refusal(UNSUPPORTED, "a stream both ways")
    if spec["workload"] == "stream":
        needs = [direction in ("client-writes", "client-reads"), 1 <= spec["size"] <= LONGEST_WRITE,
                 not is_client or spec.get("bytes", 0) > 0]
    else:
        needs = [not is_client or 1 <= spec["size"] <= PERIOD, not is_client or "operations" in spec or "duration_ns" in spec]
    if not all(needs):
        raise Refusal(BAD_SPEC, "size, direction, bytes, operations or duration is missing or out of range")


async def run(spec):
    await (client if spec["role"] == "client" else server)(spec)


def number(value):
    return value.to_bytes(8, "little")


async def receive_number(socket):
    """A number, and the bytes behind it."""
    received = b""
    while len(received) < 8:
        received += await socket.recv()
    return int.from_bytes(received[:8], "little"), received[8:]


# ---------------------------------------------------------------------------------------------- server

async def server(spec):
    content = Content(LONGEST_MESSAGE if spec["workload"] == "stream" else 0)

    async def echo(socket):
        async for message in socket:
            await socket.send(message)

    async def transfers(socket):
        while True:
            total, rest = await receive_number(socket)
            if spec["options"]["direction"] == "client-writes":
                await socket.send(number(await compare(socket, content, total, rest)))
            else:
                await write(socket, content, total, spec["size"])

    async def serve_one(socket):
        try:
            await (transfers if spec["workload"] == "stream" else echo)(socket)
        except websockets.ConnectionClosed:
            pass  # a peer that vanishes ends its own connection only

    linerate.end_on_sigterm()
    ip, port = linerate.address(spec["listen"])
    context = linerate.tls_context(spec)
    listening = await serve(serve_one, ip, port, ssl=context, backlog=linerate.BACKLOG, **SETTINGS)
    linerate.emit_ready(listening.sockets[0])
    await listening.serve_forever()


async def write(socket, content, total, size, progress=lambda: None):
    for at in range(0, total, size):
        await socket.send(content.piece(at, min(size, total - at)))
        progress()


async def compare(socket, content, total, first=b"", progress=lambda: None):
    """Receives `total` bytes and counts the good ones."""
    at = good = 0
    piece = first
    while True:
        good += content.good(at, piece)
        at += len(piece)
        if at >= total:
            return good
        piece = await socket.recv()
        progress()


# ---------------------------------------------------------------------------------------------- client

class Link:
    """One connection of the client."""

    def __init__(self):
        self.socket, self.progress = None, 0

    def advance(self):
        self.progress += 1


async def client(spec):
    tally, context, timeout = Tally(spec), linerate.tls_context(spec), spec["timeout_ns"] / 1e9
    (ip, port), described, links = linerate.address(spec["connect"]), None, []
    for turn in range(spec["connections"]):
        link = Link()
        try:
            sources = spec.get("sources") or []
            local = {"local_addr": (sources[turn % len(sources)], 0)} if sources else {}
            named = {"ssl": context, "server_hostname": spec["tls"].get("name")} if context else {}
            host = f"[{ip}]" if ":" in ip else ip
            uri = f"{'wss' if context else 'ws'}://{host}:{port}/"
            link.socket = await connect(uri, open_timeout=timeout, close_timeout=timeout, proxy=None,
                                        **named, **local, **SETTINGS)
        except (OSError, ssl.SSLError, websockets.WebSocketException) as error:
            tally.fail(connect_kind(error))
            continue
        links.append(link)
        if context:
            secured = link.socket.transport.get_extra_info("ssl_object")
            described = f"{secured.version()} {secured.cipher()[0]} {ssl.OPENSSL_VERSION}"
            if secured.cipher()[0] != "TLS_AES_128_GCM_SHA256":
                raise Refusal(1, f"TLS negotiated {secured.cipher()[0]}, not the contract's cipher suite")
    content = Content(max(spec["size"], LONGEST_MESSAGE)) if spec["workload"] == "stream" else None
    message = page(spec["size"]) if spec["workload"] == "rr" else b""
    tally.open()

    async def work(link):
        if content:
            made = 0
            while another(spec, tally, made):
                await transfer(link, spec, content, tally)
                made += 1
        else:
            await round_trips(link, message, tally)

    async def watch(link):
        task = asyncio.ensure_future(work(link))
        try:
            seen = -1
            while not task.done() and seen != link.progress:
                seen = link.progress
                await asyncio.wait([task], timeout=timeout)
            if not task.done():
                task.cancel()
                tally.fail("timeout")
                return link.socket.transport.abort()
            await task
            await link.socket.close()
        except (OSError, websockets.ConnectionClosed) as error:
            tally.fail("reset" if isinstance(error, ConnectionError) else "truncated" if content else "empty_reply")

    await asyncio.gather(*(watch(link) for link in links))
    done = tally.done()
    if described:
        done["tls"] = described
    linerate.emit(**done)


def another(spec, tally, made):
    """True if a transfer follows the first ones: one of the spec's number, or with a duration any until the time is over."""
    if "duration_ns" in spec:
        return made == 0 or time.monotonic_ns() < tally.until
    return made < int(spec["options"].get("transfers", 1))


async def transfer(link, spec, content, tally):
    total, size = spec["bytes"], spec["size"]
    began = time.monotonic_ns()
    await link.socket.send(number(total))
    if spec["options"]["direction"] == "client-writes":
        await write(link.socket, content, total, size, link.advance)
        good, _ = await receive_number(link.socket)
    else:
        good = await compare(link.socket, content, total, progress=link.advance)
    tally.succeed(-(-good // size), good, began, time.monotonic_ns())
    if good != total:
        tally.fail("wrong_content")


async def round_trips(link, message, tally):
    began = time.monotonic_ns()
    while tally.begin(began):
        await link.socket.send(message)
        received = await link.socket.recv()
        while len(received) < len(message):
            received += await link.socket.recv()
        link.advance()
        now = time.monotonic_ns()
        if received == message:
            tally.succeed(1, len(message), began, now)
        else:
            tally.fail("wrong_content")
        began = now


def connect_kind(error):
    kinds = [(ssl.SSLError, "tls_failed"), (ConnectionRefusedError, "connect_refused"), (TimeoutError, "connect_timeout"),
             (websockets.InvalidStatus, "wrong_status"), (websockets.WebSocketException, "malformed")]
    return next((kind for cause, kind in kinds if isinstance(error, cause)), "connect_failed")


if __name__ == "__main__":
    linerate.start(PROGRAM, run, check)
