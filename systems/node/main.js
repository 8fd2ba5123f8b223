// Node's modules http, http2 and net as a system of linerate (sdk/CONTRACT.md): main.js SPEC.
//
//	spec -> http.Server on the event loop -> "ready" on stdout
//	spec with "ends" -> a server and its client on one event loop -> "done" on stdout
'use strict';

const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const { BACKLOG, Refusal, Tally, UNSUPPORTED, checkWork, connectKind, listen, now, page, start } = require('./linerate.js');

// V8 compiles hot code before the window, for this time in nanoseconds.
const WARM_UP = 3e8;

function pages(size, { createServer } = http) {
  const body = page(size);
  return createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
    response.end(body);
  });
}

// Returns what it receives.
function echo() {
  return net.createServer({ noDelay: true }, (socket) => socket.on('error', () => socket.destroy()).pipe(socket));
}

// A connection of the client: `operate(done)` makes one operation and calls done(kind), of a failure, or done().
class Exchanges {
  constructor(port, { size, timeout_ns }, ready) {
    Object.assign(this, { message: page(size), received: [], length: 0, done: ready });
    this.socket = net.connect({ host: '127.0.0.1', port, noDelay: true }, () => ready());
    this.socket.setTimeout(timeout_ns / 1e6, () => this.end('timeout'));
    this.socket.on('data', (piece) => this.got(piece));
    this.socket.on('error', (error) => this.end(error.code === 'ECONNRESET' ? 'reset' : connectKind(error)));
    this.socket.on('close', () => this.end(this.length > 0 ? 'truncated' : 'empty_reply'));
  }

  isOver() {
    return this.socket.destroyed;
  }

  operate(done) {
    this.done = done;
    this.socket.write(this.message);
  }

  got(piece) {
    this.received.push(piece);
    this.length += piece.length;
    if (this.length < this.message.length) return;
    const all = this.received.length === 1 ? piece : Buffer.concat(this.received);
    [this.received, this.length] = [[], 0];
    this.end(all.equals(this.message) ? undefined : 'wrong_content');
  }

  end(kind) {
    const done = this.done;
    this.done = undefined;
    if (kind) this.socket.destroy();
    if (done) done(kind);
  }
}

// The same with requests. The first one, before the window, opens the connection.
class Requests {
  constructor(port, { size, timeout_ns }, ready) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    Object.assign(this, { page: page(size), options: { host: '127.0.0.1', port, agent, timeout: timeout_ns / 1e6 } });
    this.operate(ready);
  }

  isOver() {
    return false; // the agent connects again
  }

  operate(done) {
    const request = http.get(this.options, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('end', () => {
        const isSame = Buffer.concat(pieces).equals(this.page);
        done(response.statusCode !== 200 ? 'wrong_status' : isSame ? undefined : 'wrong_content');
      });
      response.on('error', () => done('truncated'));
    });
    request.on('timeout', () => request.destroy(new Error('timed out')));
    request.on('error', (error) => done(error.message === 'timed out' ? 'timeout' : connectKind(error)));
  }
}

// Client and server on this loop.
function drive(spec) {
  if (spec.options.ends === undefined || spec.workload !== 'rr') throw new Refusal(UNSUPPORTED, 'a client beside another server');
  if (spec.layer === 'h2c') throw new Refusal(UNSUPPORTED, 'a client of HTTP/2');
  checkWork(spec);
  const [server, Connection] = spec.layer === 'http' ? [pages(spec.size), Requests] : [echo(), Exchanges];
  server.listen({ host: '127.0.0.1', port: 0, backlog: BACKLOG }, () => {
    let missing = spec.connections;
    const all = Array.from({ length: spec.connections }, () => new Connection(server.address().port, spec, ready));
    function ready() {
      // A turn of the loop later the server has the last connection as well.
      if (--missing === 0) setTimeout(() => warmUp(spec, all), 1);
    }
  });
}

function warmUp(spec, connections) {
  operate({ ...spec, operations: undefined, duration_ns: WARM_UP }, connections, () => {
    operate(spec, connections, (tally) => {
      tally.done({ verified: tally.operations });
      process.exit(0);
    });
  });
}

// All operations of a spec; `over` gets their tally.
function operate(spec, connections, over) {
  const tally = new Tally(spec);
  let running = connections.length;
  const next = (connection, began) => {
    if (!connection.isOver() && tally.begin(began)) return connection.operate((kind) => ended(connection, began, kind));
    if (--running === 0) over(tally);
  };
  const ended = (connection, began, kind) => {
    const at = now();
    if (kind) tally.fail(kind, at);
    else tally.succeed(1, spec.size, began, at);
    next(connection, at);
  };
  for (const connection of connections) next(connection, tally.start);
}

const version = process.versions.node;
const program = { roles: ['client', 'server'], layers: ['h2c', 'http', 'tcp'], workloads: ['crr', 'rr'], ends: ['one-loop'] };
start({ name: 'node', version, ...program }, (spec) => {
  if (spec.role === 'client') return drive(spec);
  if (spec.layer === 'tcp') throw new Refusal(UNSUPPORTED, 'a server over TCP alone');
  if (spec.layer === 'h2c' && spec.workload !== 'rr') throw new Refusal(UNSUPPORTED, 'HTTP/2 with a connection for each request');
  listen(pages(spec.size, spec.layer === 'h2c' ? http2 : http), spec);
}, ['streams']); // the client's, over HTTP/2
