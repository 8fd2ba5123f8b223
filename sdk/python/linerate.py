"""The contract (sdk/CONTRACT.md) for programs in Python, with one event loop.

argv -> start(): refusals, "describe" -> the program's check(spec) and run(spec) -> JSON lines on stdout
"""

import asyncio
import contextlib
import difflib
import json
import os
import signal
import ssl
import sys
import time
from collections import Counter

CONTRACT = 3
UNSUPPORTED, BAD_SPEC = 127, 2
PERIOD = 65_536
BACKLOG = 511
LONGEST_WRITE = 1 << 20
# The spec's fields and options in the contract. Unknown names are refused.
FIELDS = set("contract role layer workload listen connect sources connections threads operations bytes duration_ns "
             "timeout_ns size path expect rate arrival seed sample_ns request tls options".split())
OPTIONS = set("buffer direction ends interval_us mode mtu nc nodelay resend runtime search shape transfers tun window".split())
DEFAULTS = {"connections": 1, "threads": 1, "size": 0, "timeout_ns": 10**10, "options": {}, "tls": {}}


class Refusal(Exception):
    """Ends the program with `status`."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def start(program, run, check=lambda spec: None, own_options=frozenset()):
    """Runs the program of one spec. `program` is the content of its "describe": name, version, roles, layers, workloads.

    The option "loop" selects the event loop: asyncio's, or that of uvloop. `own_options` are not the contract's.
    """
    try:
        spec = parse(sys.argv[1:], own_options)
        if spec["role"] == "describe":
            return emit(event="describe", **program)
        served = [spec["role"] in program["roles"], spec["layer"] in program["layers"],
                  spec["workload"] in program["workloads"]]
        if not all(served):
            raise Refusal(UNSUPPORTED, f"{spec['role']} of layer {spec['layer']!r} and workload {spec['workload']!r}")
        if spec.get("rate") is not None or spec["threads"] > 1:
            raise Refusal(UNSUPPORTED, 'an open loop ("rate"), or several threads')
        is_one_loop = check_ends(spec, program.get("ends", []))
        if not is_one_loop and ("connect" if spec["role"] == "client" else "listen") not in spec:
            raise Refusal(BAD_SPEC, "the address is missing")
        check(spec)
        with asyncio.Runner(loop_factory=loop_factory(spec)) as runner:
            runner.run(run(spec))
    except Refusal as refusal:
        kind = {UNSUPPORTED: "unsupported: ", BAD_SPEC: "bad spec: "}.get(refusal.status, "")
        print(f"{program['name']}: {kind}{refusal}", file=sys.stderr)
        sys.exit(refusal.status)


def parse(arguments, own_options=frozenset()):
    try:
        [text] = arguments
        spec = json.loads(text)
        [spec[name] for name in ("role", "layer", "workload")]
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(BAD_SPEC, f"expected one argument, the spec as JSON (sdk/CONTRACT.md): {error!r}") from None
    if spec.get("contract") != CONTRACT:
        raise Refusal(BAD_SPEC, f"the spec has contract {spec.get('contract')}, this program implements {CONTRACT}")
    spec = DEFAULTS | spec
    check_names("", spec, FIELDS)
    check_names("options.", spec["options"], OPTIONS | {"loop"} | own_options)
    return spec


def check_names(prefix, given, known):
    for name in sorted(given.keys() - known):
        nearest = difflib.get_close_matches(name, sorted(known), 1)
        hint = f'nearest: "{nearest[0]}"' if nearest else f"known: {', '.join(sorted(known))}"
        raise Refusal(BAD_SPEC, f'"{prefix}{name}" is not known; {hint}')


def check_ends(spec, known):
    """True if the client is client and server in one loop; refused where that is not among `known`."""
    ends = spec["options"].get("ends")
    if ends not in (None, "one-loop"):
        raise Refusal(BAD_SPEC, f'"options.ends" must be one-loop, not {ends}')
    if ends and (spec["role"] != "client" or ends not in known):
        raise Refusal(UNSUPPORTED, "both ends in one loop")
    return ends is not None


def loop_factory(spec):
    loop = spec["options"].get("loop", "asyncio")
    if loop == "asyncio":
        return None
    if loop != "uvloop":
        raise Refusal(BAD_SPEC, f'"options.loop" is {loop!r}; known: asyncio, uvloop')
    import uvloop
    return uvloop.new_event_loop


def emit(**event):
    print(json.dumps(event), flush=True)


def emit_ready(socket):
    """The event of a server that listens on this socket."""
    ip, port = socket.getsockname()[:2]
    emit(event="ready", address=f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}")


def end_on_sigterm():
    """At once: the contract allows one second, and closing handshakes of open connections would take longer."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)


def address(text):
    ip, _, port = text.rpartition(":")
    return ip.strip("[]"), int(port)


def tls_context(spec):
    """TLS 1.3 by Python's ssl; None on a layer without TLS."""
    if spec["layer"] not in ("https", "tls", "wss"):
        return None
    is_server = spec["role"] == "server"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    texts = spec["tls"]
    try:
        if is_server:
            context.num_tickets = 0
            with pem_file(texts) as name:
                context.load_cert_chain(name)
        else:
            context.load_verify_locations(cadata=texts["authority"])
    except (KeyError, ssl.SSLError) as error:
        raise Refusal(BAD_SPEC, f'"tls": {error!r}') from None
    return context


@contextlib.contextmanager
def pem_file(texts):
    """The name of a file with certificate and key: Python reads them from files only. This one is in memory."""
    pem = os.memfd_create("pem")
    os.write(pem, (texts["certificate"] + texts["key"]).encode())
    yield f"/proc/self/fd/{pem}"
    os.close(pem)


def page(size):
    """The content of a page, and of a message."""
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


class Tally:
    """Counts of all connections of a client, which share one thread, and its window.

    The window ends at the end of its time, or with the last of its operations; streams end with their last transfer if that
    is later.
    """

    def __init__(self, spec):
        self.left = self.limit = spec.get("operations", 2**63)
        self.duration, self.is_stream = spec.get("duration_ns"), spec["workload"] == "stream"
        self.operations = self.bytes = self.in_flight = self.end = 0
        self.start = self.cpu = self.used = None
        self.until = 2**63
        self.errors, self.latency = Counter(), Counter()

    def open(self):
        """Reads the clocks: all connections are established."""
        self.start, self.cpu = time.monotonic_ns(), time.process_time_ns()
        if self.duration is not None:
            self.until = self.start + self.duration

    def begin(self, now):
        """Takes one operation from the budget; false if no operation or no time is left."""
        if now >= self.until:
            self.stop()
            return False
        if self.left == 0:
            return False
        self.left -= 1
        return True

    def stop(self):
        """Reads the CPU time when the time is found over: waiting for operations in flight takes none."""
        if self.used is None:
            self.used = time.process_time_ns() - self.cpu

    def was_in_flight(self, now):
        """Counts an operation that ends after the window. Transfers in flight are finished and count."""
        was = now > self.until and not self.is_stream
        self.in_flight += was
        return was

    def succeed(self, operations, bytes_, began, now):
        if self.was_in_flight(now):
            return
        self.operations += operations
        self.bytes += bytes_
        self.latency[rounded(now - began)] += 1
        self.end = now

    def fail(self, kind):
        """After the window only the end of an operation's time is a failure."""
        now = time.monotonic_ns()
        if self.was_in_flight(now) and kind != "timeout":
            return
        self.errors[kind] += 1
        self.end = now

    def window_end(self):
        is_used_up = not self.is_stream and self.operations + self.errors.total() >= self.limit and self.in_flight == 0
        if self.duration is None or is_used_up:
            return max(self.start, self.end)
        return max(self.until, self.end) if self.is_stream else self.until

    def done(self):
        """The event of the client."""
        self.stop()
        done = {"event": "done", "operations": self.operations, "bytes": self.bytes, "start_ns": self.start,
                "end_ns": self.window_end(), "in_flight": self.in_flight, "errors": self.errors, "cpu_ns": self.used,
                "verified": self.bytes if self.is_stream else self.operations}
        if self.latency:
            pairs = sorted(self.latency.items())
            done["latency"] = {"pairs": pairs, "min": pairs[0][0], "max": pairs[-1][0]}
        return done


def rounded(nanos):
    """The highest value of the bucket with three significant digits, as in HdrHistogram."""
    shift = max(0, nanos.bit_length() - 11)
    return ((nanos >> shift) + 1 << shift) - 1
