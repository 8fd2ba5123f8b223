# A client of HTTP/3 by aioquic: three requests on one connection, each printed with its status.
import asyncio
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.answers = {}

    def quic_event_received(self, event):
        for one in self.http.handle_event(event):
            answer, end = self.answers[one.stream_id]
            if isinstance(one, HeadersReceived):
                answer.append(dict(one.headers)[b":status"] + b" ")
            elif isinstance(one, DataReceived):
                answer.append(one.data)
            if one.stream_ended:
                end.set_result(b"".join(answer))

    def get(self):
        stream = self._quic.get_next_available_stream_id()
        end = asyncio.get_running_loop().create_future()
        self.answers[stream] = ([], end)
        head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/")]
        self.http.send_headers(stream, head, end_stream=True)
        self.transmit()
        return end


async def main():
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", int(sys.argv[1]), configuration=configuration, create_protocol=Client) as client:
        for answer in await asyncio.gather(*[client.get() for _ in range(3)]):
            print(answer.decode())


asyncio.run(main())
