# A server of HTTP/3 by aioquic: arguments are certificate, key and page; it prints its port.
import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

certificate, key, file = sys.argv[1:]
page = open(file, "rb").read()


class Server(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        for one in self.http.handle_event(event) if hasattr(self, "http") else []:
            if isinstance(one, HeadersReceived):
                head = [(b":status", b"200"), (b"content-length", str(len(page)).encode())]
                self.http.send_headers(one.stream_id, head)
                self.http.send_data(one.stream_id, page, end_stream=True)
                self.transmit()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
