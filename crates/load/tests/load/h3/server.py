# A server of HTTP/3 by aioquic: arguments are certificate, key and page; it prints its port. With a fourth, a number
# of milliseconds, its first connection answers one of ten requests, and after that time has looked at no other.
import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, FrameType, H3Connection, encode_frame
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

certificate, key, file, *kept = sys.argv[1:]
page = open(file, "rb").read()
first = []


class Server(QuicConnectionProtocol):
    def go_away(self):
        goaway = encode_frame(FrameType.GOAWAY, encode_uint_var(4))
        self._quic.send_stream_data(self.http._local_control_stream_id, goaway)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            first.append(self)
        for one in self.http.handle_event(event) if hasattr(self, "http") else []:
            if isinstance(one, HeadersReceived):
                if kept and self is first[0] and one.stream_id > 0:
                    if one.stream_id == 36:
                        asyncio.get_running_loop().call_later(int(kept[0]) / 1000, self.go_away)
                    continue
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
