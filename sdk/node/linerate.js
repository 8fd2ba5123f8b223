// The contract (sdk/CONTRACT.md) for programs in Node.js, with one event loop.
//
//	argv -> start(): refusals, "describe" -> the program's run(spec) -> JSON lines on stdout
'use strict';

const CONTRACT = 3;
const UNSUPPORTED = 127;
const BAD_SPEC = 2;
const BACKLOG = 511;
const PERIOD = 65536;
const LONGEST_WRITE = 1 << 20;
// The spec's fields and options in the contract. Unknown names are refused.
const FIELDS = ('contract role layer workload listen connect sources connections threads operations bytes duration_ns ' +
  'timeout_ns size path expect rate arrival seed sample_ns request tls options').split(' ');
const OPTIONS = ('buffer direction ends interval_us mode mtu nc nodelay resend runtime search shape transfers tun window').split(' ');
const DEFAULTS = { connections: 1, threads: 1, size: 0, timeout_ns: 1e10, options: {}, tls: {} };

// Ends the program with `status`.
class Refusal extends Error {
  constructor(status, text) {
    super({ [UNSUPPORTED]: 'unsupported: ', [BAD_SPEC]: 'bad spec: ' }[status] + text);
    this.status = status;
  }
}

// Runs the program of one spec. `program` is the content of its "describe": name, version, roles, layers, workloads. `own` are
// its options beyond the contract.
function start(program, run, own = []) {
  try {
    const spec = parse(process.argv.slice(2), own);
    if (spec.role === 'describe') return emit({ event: 'describe', ...program });
    if (!program.roles.includes(spec.role) || !program.layers.includes(spec.layer) ||
        !program.workloads.includes(spec.workload)) {
      throw new Refusal(UNSUPPORTED, `${spec.role} of layer "${spec.layer}" and workload "${spec.workload}"`);
    }
    if (spec.threads > 1 || spec.rate !== undefined) throw new Refusal(UNSUPPORTED, 'several threads, or an open loop ("rate")');
    const { ends } = spec.options;
    if (ends !== undefined && ends !== 'one-loop') throw new Refusal(BAD_SPEC, `"options.ends" must be one-loop, not ${ends}`);
    if (ends !== undefined && !(spec.role === 'client' && program.ends?.includes(ends))) {
      throw new Refusal(UNSUPPORTED, 'both ends in one loop');
    }
    const address = ends !== undefined ? '127.0.0.1:0' : spec.role === 'client' ? spec.connect : spec.listen;
    if (!/^.+:\d+$/.test(address)) throw new Refusal(BAD_SPEC, '"connect" or "listen" is missing, or no address');
    run(spec);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    process.stderr.write(`${program.name}: ${error.message}\n`);
    process.exit(error.status);
  }
}

function parse(texts, own) {
  let spec;
  try {
    if (texts.length !== 1) throw new Error(`${texts.length} arguments`);
    spec = { ...DEFAULTS, ...JSON.parse(texts[0]) };
  } catch (error) {
    throw new Refusal(BAD_SPEC, `expected one argument, the spec as JSON (sdk/CONTRACT.md): ${error.message}`);
  }
  if (spec.contract !== CONTRACT) {
    throw new Refusal(BAD_SPEC, `the spec has contract ${spec.contract}, this program implements ${CONTRACT}`);
  }
  checkNames('', spec, FIELDS);
  checkNames('options.', spec.options, [...OPTIONS, ...own]);
  return spec;
}

function checkNames(prefix, given, known) {
  for (const name of Object.keys(given).filter((name) => !known.includes(name))) {
    const nearest = known.reduce((best, other) => (distance(name, other) < distance(name, best) ? other : best));
    const isNear = distance(name, nearest) <= 1 + name.length / 3;
    const hint = isNear ? `nearest: "${nearest}"` : `known: ${known.join(', ')}`;
    throw new Refusal(BAD_SPEC, `"${prefix}${name}" is not known; ${hint}`);
  }
}

// The number of letters to insert, remove or replace.
function distance(a, b) {
  let row = [...Array(b.length + 1).keys()];
  for (const letter of a) {
    const next = [row[0] + 1];
    for (let i = 0; i < b.length; i++) {
      next.push(Math.min(next[i] + 1, row[i + 1] + 1, row[i] + (b[i] === letter ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

// Refuses a spec without the numbers that `rr` and `stream` need.
function checkWork({ role, workload, size, bytes, operations, duration_ns, options }) {
  const isClient = role === 'client';
  const isStream = workload === 'stream';
  const isInRange = size >= 1 && size <= (isStream ? LONGEST_WRITE : PERIOD);
  const good = isStream
    ? isInRange && ['client-writes', 'client-reads', 'both'].includes(options.direction) && (!isClient || bytes > 0)
    : !isClient || (isInRange && (operations ?? duration_ns) > 0);
  if (!good) throw new Refusal(BAD_SPEC, 'size, direction, bytes, operations or duration is missing or out of range');
}

function emit(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
}

// [host, port] of "ip:port" or "[ip]:port".
function address(text) {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(text);
  return [host, Number(port)];
}

// Listens, prints "ready", and ends on SIGTERM. `server` is one of net, http or https.
function listen(server, spec) {
  server.on('error', (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
  const [host, port] = address(spec.listen);
  server.listen({ host, port, backlog: BACKLOG }, () => {
    const bound = server.address();
    const ip = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
    emit({ event: 'ready', address: `${ip}:${bound.port}` });
  });
}

// The content of a page, and of a message.
function page(size) {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const mask = (1n << 64n) - 1n;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += 8) {
    let word = (BigInt(at / 8 + 1) * 0x9e3779b97f4a7c15n) & mask;
    word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & mask;
    word ^= word >> 31n;
    for (let i = 0; i < 8 && at + i < size; i++) {
      bytes[at + i] = alphabet.charCodeAt(Number((word >> BigInt(8 * i)) & 63n));
    }
  }
  return bytes;
}

// The endless content, which repeats after 65,536 bytes. A piece of up to `longest` bytes is one slice.
class Content {
  constructor(longest) {
    this.bytes = Buffer.alloc(PERIOD * (2 + Math.ceil(longest / PERIOD))).fill(page(PERIOD));
  }

  piece(at, length) {
    return this.bytes.subarray(at % PERIOD, (at % PERIOD) + length);
  }

  good(at, received) {
    const right = this.piece(at, received.length);
    if (right.equals(received)) return received.length;
    return received.reduce((good, byte, i) => good + (byte === right[i] ? 1 : 0), 0);
  }
}

// The contract's kind of an error before a connection is established.
function connectKind({ code, message }) {
  const kinds = { ECONNREFUSED: 'connect_refused', ETIMEDOUT: 'connect_timeout', EMFILE: 'descriptor_exhausted' };
  if (kinds[code]) return kinds[code];
  if (/timed out/.test(message)) return 'connect_timeout';
  if (/SSL|TLS|CERT|SIGNATURE|ISSUER/.test(`${code} ${message}`)) return 'tls_failed';
  return code && !code.startsWith('HPE_') ? 'connect_failed' : 'malformed';
}

// CLOCK_MONOTONIC. Exact for the first hundred days of a machine.
const now = () => Number(process.hrtime.bigint());

// The operations and errors of a client, whose connections share one thread, and its window: it ends at the end of its time,
// or with the last of its operations; streams end with their last transfer if that is later.
class Tally {
  constructor(spec) {
    Object.assign(this, { left: spec.operations ?? Infinity, operations: 0, bytes: 0, inFlight: 0, errors: {}, latency: new Map() });
    Object.assign(this, { limit: this.left, finishes: spec.workload === 'stream' });
    this.start = this.end = now();
    this.until = this.start + (spec.duration_ns ?? Infinity);
    this.cpu = process.cpuUsage();
  }

  // Takes one operation from the budget; false if no operation or no time is left.
  begin(at) {
    if (at < this.until) return this.left-- > 0;
    this.stop();
    return false;
  }

  // Reads the CPU time when the time is found over: waiting for operations in flight takes none.
  stop() {
    this.used ??= process.cpuUsage(this.cpu);
  }

  // Counts an operation that ends after the window, and returns true. Transfers in flight are finished and count.
  wasInFlight(ended) {
    const was = ended > this.until && !this.finishes;
    if (was) this.inFlight += 1;
    return was;
  }

  succeed(operations, bytes, began, ended) {
    if (this.wasInFlight(ended)) return;
    const { floor, log2, max } = Math;
    // The highest value of the bucket with three significant digits, as in HdrHistogram.
    const width = 2 ** max(0, floor(log2(max(1, ended - began))) - 10);
    const bucket = (floor((ended - began) / width) + 1) * width - 1;
    this.latency.set(bucket, (this.latency.get(bucket) ?? 0) + 1);
    this.operations += operations;
    this.bytes += bytes;
    this.end = ended;
  }

  // After the window only the end of an operation's time is a failure.
  fail(kind, ended = now()) {
    if (this.wasInFlight(ended) && kind !== 'timeout') return;
    this.errors[kind] = (this.errors[kind] ?? 0) + 1;
    this.end = ended;
  }

  // The end of the window.
  windowEnd() {
    const made = Object.values(this.errors).reduce((sum, count) => sum + count, this.operations);
    const isUsedUp = !this.finishes && made >= this.limit && this.inFlight === 0;
    if (this.until === Infinity || isUsedUp) return this.end;
    return this.finishes ? Math.max(this.end, this.until) : this.until;
  }

  // Prints the window; `more` are further fields.
  done(more) {
    this.stop();
    const pairs = [...this.latency].sort(([a], [b]) => a - b);
    const latency = pairs.length > 0 ? { pairs, min: pairs[0][0], max: pairs.at(-1)[0] } : undefined;
    const { operations, bytes, errors, start, used } = this;
    const [end, in_flight] = [this.windowEnd(), this.inFlight || undefined];
    const cpu = 1000 * (used.user + used.system);
    emit({ event: 'done', operations, bytes, start_ns: start, end_ns: end, in_flight, errors, latency, cpu_ns: cpu, ...more });
  }
}

module.exports = { BACKLOG, UNSUPPORTED, Content, Refusal, Tally, checkWork, connectKind, listen, now, page, start };
