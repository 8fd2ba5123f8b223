"""picows as a system of linerate (sdk/CONTRACT.md): main.py SPEC.

spec -> one listener for each connection, called for each frame -> JSON lines on stdout
"""

import sys

from picows import WSListener, WSMsgType, __version__, ws_create_server

import linerate
from linerate import BAD_SPEC, LONGEST_WRITE, UNSUPPORTED, Content, Refusal

PROGRAM = {
    "name": "picows", "version": f"{__version__} (Python {sys.version.split()[0]})",
    "roles": ["server"], "layers": ["websocket"], "workloads": ["rr", "stream"],
}
LONGEST_MESSAGE = 16 << 20


def check(spec):
    direction = spec["options"].get("direction")
    if spec["workload"] == "stream" and direction == "both":
        raise Refusal(UNSUPPORTED, "a stream both ways")
    if spec["workload"] == "stream" and not (direction in ("client-writes", "client-reads") and 1 <= spec["size"] <= LONGEST_WRITE):
        raise Refusal(BAD_SPEC, "direction or size is missing or out of range")


async def run(spec):
    linerate.end_on_sigterm()
    content = Content(LONGEST_MESSAGE if spec["workload"] == "stream" else 0)

    def listener(request):
        return Transfers(content, spec) if spec["workload"] == "stream" else Echo()

    ip, port = linerate.address(spec["listen"])
    listening = await ws_create_server(listener, ip, port, max_frame_size=LONGEST_MESSAGE, backlog=linerate.BACKLOG)
    linerate.emit_ready(listening.sockets[0])
    await listening.serve_forever()


class Echo(WSListener):
    def on_ws_frame(self, transport, frame):
        if not closes(transport, frame):
            transport.send(frame.msg_type, frame.get_payload_as_bytes(), frame.fin)


class Transfers(WSListener):
    """Counted transfers, one after the other: a number of bytes, then the bytes, from the client or to it."""

    def __init__(self, content, spec):
        self.content, self.size = content, spec["size"]
        self.client_reads = spec["options"]["direction"] == "client-reads"
        self.number, self.total, self.at, self.good, self.is_paused = b"", 0, 0, 0, False

    def on_ws_connected(self, transport):
        self.transport = transport

    def on_ws_frame(self, transport, frame):
        if closes(transport, frame):
            return
        payload = frame.get_payload_as_memoryview()
        while payload:
            if self.at == self.total:
                payload = self.begin(payload)
            else:
                payload = self.receive(payload)

    def begin(self, payload):
        missing = 8 - len(self.number)
        self.number += payload[:missing]
        if len(self.number) == 8:
            self.total, self.at, self.good = int.from_bytes(self.number, "little"), 0, 0
            self.number = b""
            if self.client_reads:
                self.write()
        return payload[missing:]

    def receive(self, payload):
        piece = payload[:self.total - self.at]
        self.good += self.content.good(self.at, piece)
        self.at += len(piece)
        if self.at == self.total:
            self.transport.send(WSMsgType.BINARY, self.good.to_bytes(8, "little"))
        return payload[len(piece):]

    def write(self):
        while self.at < self.total and not self.is_paused:
            piece = self.content.piece(self.at, min(self.size, self.total - self.at))
            self.at += len(piece)
            self.transport.send(WSMsgType.BINARY, piece)

    def pause_writing(self):
        self.is_paused = True

    def resume_writing(self):
        self.is_paused = False
        self.write()


def closes(transport, frame):
    if frame.msg_type != WSMsgType.CLOSE:
        return False
    transport.send_close(frame.get_close_code(), frame.get_close_message())
    transport.disconnect()
    return True


if __name__ == "__main__":
    linerate.start(PROGRAM, run, check)
