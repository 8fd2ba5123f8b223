"""Python's websockets as a system of linerate (sdk/CONTRACT.md): main.py SPEC.

spec -> server() | client() on asyncio, one coroutine for each connection -> JSON lines on stdout
"""

import asyncio
import difflib
import json
import os
import signal
import ssl
import sys
import time
from collections import Counter

import websockets
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

NAME = "python-websockets"
CONTRACT = 2
UNSUPPORTED, BAD_SPEC = 127, 2
PERIOD = 65_536
LONGEST_MESSAGE = 16 << 20
LONGEST_WRITE = 1 << 20
BACKLOG = 511
# The spec's fields and options in the contract. Unknown names are refused.
FIELDS = set("contract role layer workload listen connect sources connections threads operations bytes duration_ns "
             "timeout_ns size path expect rate arrival seed sample_ns request tls options".split())
OPTIONS = set("buffer direction interval_us mode mtu nc nodelay resend runtime search shape transfers tun window".split())
# The library's defaults, except: no compression, the contract's limit of messages, no pings.
SETTINGS = {"compression": None, "max_size": LONGEST_MESSAGE, "ping_interval": None}


class Refusal(Exception):
    """Ends the program with `status`."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def main():
    try:
        spec = parse(sys.argv[1:])
        if spec["role"] == "describe":
            version = f"{websockets.__version__} (Python {sys.version.split()[0]})"
            emit(event="describe", name=NAME, version=version, roles=["client", "server"],
                 layers=["websocket", "wss"], workloads=["rr", "stream"])
            return
        asyncio.run((server if spec["role"] == "server" else client)(spec))
    except Refusal as refusal:
        kind = {UNSUPPORTED: "unsupported: ", BAD_SPEC: "bad spec: "}.get(refusal.status, "")
        print(f"{NAME}: {kind}{refusal}", file=sys.stderr)
        sys.exit(refusal.status)


# ---------------------------------------------------------------------------------------------- the spec

def parse(arguments):
    try:
        [text] = arguments
        spec = json.loads(text)
        role, layer, workload = spec["role"], spec["layer"], spec["workload"]
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(BAD_SPEC, f"expected one argument, the spec as JSON (sdk/CONTRACT.md): {error!r}") from None
    if spec.get("contract") != CONTRACT:
        raise Refusal(BAD_SPEC, f"the spec has contract {spec.get('contract')}, this program implements {CONTRACT}")
    spec = {"connections": 1, "threads": 1, "size": 0, "timeout_ns": 10**10, "options": {}, "tls": {}} | spec
    check_names("", spec, FIELDS)
    if role == "describe":
        return spec
    check_names("options.", spec["options"], OPTIONS)
    if role not in ("client", "server") or layer not in ("websocket", "wss") or workload not in ("rr", "stream"):
        raise Refusal(UNSUPPORTED, f"{role} of layer {layer!r} and workload {workload!r}")
    if spec.get("rate") is not None or spec["threads"] > 1:
        raise Refusal(UNSUPPORTED, 'an open loop ("rate"), or several threads')
    direction = spec["options"].get("direction")
    if workload == "stream" and direction == "both":
        raise Refusal(UNSUPPORTED, "a stream both ways")
    needs = [("connect" if role == "client" else "listen") in spec]
    if workload == "stream":
        needs += [direction in ("client-writes", "client-reads"), 1 <= spec["size"] <= LONGEST_WRITE]
        needs += [role == "server" or spec.get("bytes", 0) > 0]
    elif role == "client":
        needs += [1 <= spec["size"] <= PERIOD, "operations" in spec or "duration_ns" in spec]
    if not all(needs):
        raise Refusal(BAD_SPEC, "address, size, direction, bytes, operations or duration is missing or out of range")
    return spec


def check_names(prefix, given, known):
    for name in sorted(given.keys() - known):
        nearest = difflib.get_close_matches(name, sorted(known), 1)
        hint = f'nearest: "{nearest[0]}"' if nearest else f"known: {', '.join(sorted(known))}"
        raise Refusal(BAD_SPEC, f'"{prefix}{name}" is not known; {hint}')


def address(text):
    ip, _, port = text.rpartition(":")
    return ip.strip("[]"), int(port)


def emit(**event):
    print(json.dumps(event), flush=True)


# ---------------------------------------------------------------------------------------------- TLS

def tls(spec):
    """TLS 1.3 by Python's ssl; None on a layer without TLS."""
    if spec["layer"] != "wss":
        return None
    is_server = spec["role"] == "server"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    texts = spec["tls"]
    try:
        if is_server:
            context.num_tickets = 0
            # Python reads certificates from files only: this file is in memory.
            pem = os.memfd_create("pem")
            os.write(pem, (texts["certificate"] + texts["key"]).encode())
            context.load_cert_chain(f"/proc/self/fd/{pem}")
            os.close(pem)
        else:
            context.load_verify_locations(cadata=texts["authority"])
    except (KeyError, ssl.SSLError) as error:
        raise Refusal(BAD_SPEC, f'"tls": {error!r}') from None
    return context


# ---------------------------------------------------------------------------------------------- content

def page(size):
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    bytes_ = bytearray()
    for index in range((size + 7) // 8):
        word = (index + 1) * 0x9E3779B97F4A7C15 % 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
        bytes_ += bytes(alphabet[word >> shift & 63] for shift in range(0, 64, 8))
    return bytes(bytes_[:size])


class Content:
    """The endless content, which repeats after 65,536 bytes. A piece of up to `longest` bytes is one slice."""

    def __init__(self, longest):
        self.bytes = memoryview(page(PERIOD) * (2 + longest // PERIOD))

    def piece(self, at, length):
        return self.bytes[at % PERIOD:at % PERIOD + length]

    def good(self, at, received):
        right = self.piece(at, len(received))
        if right == received:
            return len(received)
        return sum(a == b for a, b in zip(right, received, strict=True))


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

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    ip, port = address(spec["listen"])
    listening = await serve(serve_one, ip, port, ssl=tls(spec), backlog=BACKLOG, **SETTINGS)
    bound = listening.sockets[0].getsockname()
    emit(event="ready", address=f"[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"{bound[0]}:{bound[1]}")
    await ended.wait()
    # The contract allows one second; closing handshakes of open connections would take longer.
    os._exit(0)


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

class Tally:
    """Counts of all connections: they share one thread."""

    def __init__(self, spec):
        self.left, self.until = spec.get("operations", 2**63), 2**63
        self.operations = self.bytes = self.end = 0
        self.errors, self.latency = Counter(), Counter()

    def begin(self, now):
        """Takes one operation from the budget; false if no operation or no time is left."""
        if self.left == 0 or now >= self.until:
            return False
        self.left -= 1
        return True

    def succeed(self, operations, bytes_, began, now):
        self.operations += operations
        self.bytes += bytes_
        self.latency[rounded(now - began)] += 1
        self.end = now

    def fail(self, kind):
        self.errors[kind] += 1
        self.end = time.monotonic_ns()


def rounded(nanos):
    """The highest value of the bucket with three significant digits, as in HdrHistogram."""
    shift = max(0, nanos.bit_length() - 11)
    return ((nanos >> shift) + 1 << shift) - 1


class Link:
    """One connection of the client."""

    def __init__(self):
        self.socket, self.progress = None, 0

    def advance(self):
        self.progress += 1


async def client(spec):
    tally, context, timeout = Tally(spec), tls(spec), spec["timeout_ns"] / 1e9
    (ip, port), described, links = address(spec["connect"]), None, []
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
    start, cpu = time.monotonic_ns(), time.process_time_ns()
    tally.until = start + spec.get("duration_ns", 2**62)

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
    done = {"event": "done", "operations": tally.operations, "bytes": tally.bytes, "start_ns": start,
            "end_ns": max(start, tally.end), "errors": tally.errors, "cpu_ns": time.process_time_ns() - cpu,
            "verified": tally.bytes if content else tally.operations}
    if tally.latency:
        pairs = sorted(tally.latency.items())
        done["latency"] = {"pairs": pairs, "min": pairs[0][0], "max": pairs[-1][0]}
    if described:
        done["tls"] = described
    emit(**done)


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
    main()
