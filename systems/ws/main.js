// The WebSocket library ws as a system of linerate (sdk/CONTRACT.md): main.js SPEC.
//
//	spec -> server() | client() on the event loop, events of each connection -> JSON lines on stdout
'use strict';

const { constants } = require('node:crypto');
const http = require('node:http');
const https = require('node:https');
const { WebSocket, WebSocketServer } = require('ws');
const { Content, Tally, UNSUPPORTED, Refusal, checkWork, connectKind, listen, now, page, start } = require('./linerate.js');

const LONGEST_MESSAGE = 16 << 20;
const TLS = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256', secureOptions: constants.SSL_OP_NO_TICKET };
// The library's defaults, except: no compression, the contract's limit of messages.
const SETTINGS = { perMessageDeflate: false, maxPayload: LONGEST_MESSAGE };

function number(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

// Sends `total` bytes in writes of `size`; the next one when the last has left, which is `progress`.
function write(socket, content, total, size, progress = () => {}, at = 0) {
  if (at >= total) return;
  const length = Math.min(size, total - at);
  socket.send(content.piece(at, length), (error) => {
    progress();
    if (!error) write(socket, content, total, size, progress, at + length);
  });
}

// Counts the good ones of `total` bytes, which arrive in calls of the function that it returns.
function compare(content, total, then) {
  let [at, good] = [0, 0];
  return (bytes) => {
    good += content.good(at, bytes);
    at += bytes.length;
    if (at >= total) then(good);
  };
}

function server(spec) {
  const content = spec.workload === 'stream' ? new Content(LONGEST_MESSAGE) : null;
  const under = spec.layer === 'wss'
    ? https.createServer({ ...TLS, cert: spec.tls.certificate, key: spec.tls.key }) : http.createServer();
  new WebSocketServer({ ...SETTINGS, server: under }).on('connection', (socket) => {
    socket.on('error', () => {}); // a peer that vanishes ends its own connection only
    let receive = null;
    const question = (bytes) => {
      const total = Number(bytes.readBigUInt64LE());
      if (spec.options.direction === 'client-reads') return write(socket, content, total, spec.size);
      receive = compare(content, total, (good) => {
        receive = question;
        socket.send(number(good));
      });
      if (bytes.length > 8) receive(bytes.subarray(8));
    };
    receive = content ? question : (bytes) => socket.send(bytes);
    socket.on('message', (bytes) => receive(bytes));
  });
  listen(under, spec);
}

// Establishes connection number `turn`: a promise of its socket, or of the error.
function connect(spec, turn) {
  const { authority: ca, name: servername } = spec.tls;
  const secure = spec.layer === 'wss' ? { ...TLS, ca, servername } : {};
  const localAddress = spec.sources?.length > 0 ? spec.sources[turn % spec.sources.length] : undefined;
  const url = `${spec.layer === 'wss' ? 'wss' : 'ws'}://${spec.connect}/`;
  const socket = new WebSocket(url, { ...SETTINGS, ...secure, localAddress, handshakeTimeout: spec.timeout_ns / 1e6 });
  return new Promise((established) => {
    socket.on('open', () => established({ socket })).on('error', (error) => established({ error }));
  });
}

// Runs the operations of one connection: a promise of its end.
function drive(socket, spec, tally, content, message) {
  let [receive, made, moved, seen, ended] = [null, 0, 0, -1, false];
  const more = () => (spec.duration_ns !== undefined ? made === 0 || now() < tally.until : made < (spec.options.transfers ?? 1));
  const transfer = () => {
    if (!more()) return close();
    const [began, { bytes, size }] = [now(), spec];
    const finish = (good) => {
      tally.succeed(Math.ceil(good / size), good, began, now());
      if (good !== bytes) tally.fail('wrong_content');
      made += 1;
      transfer();
    };
    socket.send(number(bytes));
    if (spec.options.direction === 'client-reads') receive = compare(content, bytes, finish);
    else {
      receive = (answer) => finish(Number(answer.readBigUInt64LE()));
      write(socket, content, bytes, size, () => { moved += 1; });
    }
  };
  const roundTrip = (began) => {
    if (!tally.begin(began)) return close();
    let parts = [];
    receive = (bytes) => {
      parts.push(bytes);
      const whole = parts.length === 1 ? bytes : Buffer.concat(parts);
      if (whole.length < message.length) return;
      const ended = now();
      if (whole.equals(message)) tally.succeed(1, whole.length, began, ended);
      else tally.fail('wrong_content');
      roundTrip(ended);
    };
    socket.send(message);
  };
  const close = () => {
    ended = true;
    socket.close(1000);
  };
  return new Promise((over) => {
    const fail = (kind) => {
      if (!ended) tally.fail(kind);
      ended = true;
    };
    const watch = setInterval(() => {
      if (moved === seen) fail('timeout'), socket.terminate();
      seen = moved;
    }, spec.timeout_ns / 1e6);
    socket.on('message', (bytes) => { moved += 1, receive(bytes); });
    socket.on('error', (error) => fail(error.code === 'ECONNRESET' || error.code === 'EPIPE' ? 'reset' : 'malformed'));
    socket.on('close', () => { clearInterval(watch), fail(content ? 'truncated' : 'empty_reply'), over(); });
    content ? transfer() : roundTrip(now());
  });
}

async function client(spec) {
  const links = await Promise.all(Array.from({ length: spec.connections }, (_, turn) => connect(spec, turn)));
  const content = spec.workload === 'stream' ? new Content(LONGEST_MESSAGE) : null;
  const [sockets, message] = [links.flatMap(({ socket }) => socket ?? []), page(spec.size)];
  const secured = sockets.map(({ _socket }) => _socket).find((socket) => socket.getCipher);
  const tls = secured && `${secured.getProtocol()} ${secured.getCipher().standardName} OpenSSL ${process.versions.openssl}`;
  const tally = new Tally(spec);
  for (const { error } of links) if (error) tally.fail(/^Unexpected server response/.test(error.message) ? 'wrong_status' : connectKind(error));
  await Promise.all(sockets.map((socket) => drive(socket, spec, tally, content, message)));
  tally.done({ verified: content ? tally.bytes : tally.operations, tls });
}

start({
  name: 'ws', version: `${require('ws/package.json').version} (Node.js ${process.versions.node})`,
  roles: ['client', 'server'], layers: ['websocket', 'wss'], workloads: ['rr', 'stream'],
}, (spec) => {
  checkWork(spec);
  if (spec.options.direction === 'both') throw new Refusal(UNSUPPORTED, 'a stream both ways');
  return spec.role === 'client' ? client(spec) : server(spec);
});
