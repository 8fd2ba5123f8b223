"""aioquic as a system of linerate (sdk/CONTRACT.md): main.py SPEC. A server of QUIC or of HTTP/3.

spec -> serve() with a protocol for each connection -> "ready" on stdout
"""

import asyncio
import sys

import aioquic
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StreamDataReceived, StreamReset

import linerate

PROGRAM = {
    "name": "aioquic", "version": f"{aioquic.__version__} (Python {sys.version.split()[0]})", "roles": ["server"],
    "layers": ["h3", "quic"], "workloads": ["crr", "rr"],
}
# The protocol of performance tests (draft-banks-quic-performance-00): a request begins with the length of its answer.
PERFORMANCE = "perf"
PREFIX = 8


class Performance(QuicConnectionProtocol):
    """A connection of performance tests."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.prefixes = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            prefix = self.prefixes.get(event.stream_id, b"")
            self.prefixes[event.stream_id] = prefix = prefix + event.data[:PREFIX - len(prefix)]
            if event.end_stream:
                answer = bytes(int.from_bytes(self.prefixes.pop(event.stream_id), "big"))
                self._quic.send_stream_data(event.stream_id, answer, end_stream=True)
                self.transmit()
        elif isinstance(event, StreamReset):
            self.prefixes.pop(event.stream_id, None)


class Pages(QuicConnectionProtocol):
    """A connection of HTTP/3: a page for each request."""

    page = b""
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        # As long as there is no protocol, there are no streams.
        for message in self.http.handle_event(event) if self.http else ():
            if isinstance(message, (HeadersReceived, DataReceived)) and message.stream_ended:
                length = str(len(self.page)).encode()
                headers = [(b":status", b"200"), (b"content-type", b"text/plain"), (b"content-length", length)]
                self.http.send_headers(message.stream_id, headers)
                self.http.send_data(message.stream_id, self.page, end_stream=True)
                self.transmit()


async def run(spec):
    is_http = spec["layer"] == "h3"
    Pages.page = linerate.page(spec["size"])
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN if is_http else [PERFORMANCE])
    with linerate.pem_file(spec["tls"]) as name:
        configuration.load_cert_chain(name)

    # As aioquic.asyncio.serve does, which does not return the address of its socket.
    def server():
        return QuicServer(configuration=configuration, create_protocol=Pages if is_http else Performance)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(server, local_addr=linerate.address(spec["listen"]))
    linerate.end_on_sigterm()
    linerate.emit_ready(transport.get_extra_info("socket"))
    await loop.create_future()


def check(spec):
    if not spec["tls"].get("certificate"):
        raise linerate.Refusal(linerate.BAD_SPEC, '"tls" is missing')


if __name__ == "__main__":
    # The two options are the client's; a server ignores them.
    linerate.start(PROGRAM, run, check, own_options={"streams", "response"})
