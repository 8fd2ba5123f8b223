// Node's http module as a system of linerate (sdk/CONTRACT.md): main.js SPEC.
//
//	spec -> refusals -> http.Server on the event loop -> "ready" on stdout
'use strict';

const http = require('node:http');

const CONTRACT = 2;
const UNSUPPORTED = 127;
const BAD_SPEC = 2;
const BACKLOG = 511;
// The spec's fields and options in the contract. Unknown names are refused.
const FIELDS = ('contract role layer workload listen connect sources connections threads operations bytes duration_ns ' +
  'timeout_ns size path expect rate arrival seed sample_ns request tls options').split(' ');
const OPTIONS = ('buffer direction interval_us mode mtu nc nodelay resend runtime search shape transfers tun window').split(' ');

function refuse(status, text) {
  const kind = { [UNSUPPORTED]: 'unsupported: ', [BAD_SPEC]: 'bad spec: ' }[status];
  process.stderr.write(`node: ${kind}${text}\n`);
  process.exit(status);
}

function emit(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
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

function checkNames(prefix, given, known) {
  for (const name of Object.keys(given).filter((name) => !known.includes(name))) {
    const nearest = known.reduce((best, other) => (distance(name, other) < distance(name, best) ? other : best));
    const isNear = distance(name, nearest) <= 1 + name.length / 3;
    const hint = isNear ? `nearest: "${nearest}"` : `known: ${known.join(', ')}`;
    refuse(BAD_SPEC, `"${prefix}${name}" is not known; ${hint}`);
  }
}

function parse(texts) {
  let spec;
  try {
    if (texts.length !== 1) throw new Error(`${texts.length} arguments`);
    spec = { threads: 1, size: 0, options: {}, ...JSON.parse(texts[0]) };
  } catch (error) {
    refuse(BAD_SPEC, `expected one argument, the spec as JSON (sdk/CONTRACT.md): ${error.message}`);
  }
  if (spec.contract !== CONTRACT) {
    refuse(BAD_SPEC, `the spec has contract ${spec.contract}, this program implements ${CONTRACT}`);
  }
  checkNames('', spec, FIELDS);
  if (spec.role === 'describe') return spec;
  checkNames('options.', spec.options, OPTIONS);
  if (spec.role !== 'server' || spec.layer !== 'http' || !['rr', 'crr'].includes(spec.workload)) {
    refuse(UNSUPPORTED, `${spec.role} of layer "${spec.layer}" and workload "${spec.workload}"`);
  }
  if (spec.threads > 1) refuse(UNSUPPORTED, 'several threads');
  if (!/^.+:\d+$/.test(spec.listen)) refuse(BAD_SPEC, '"listen" is missing, or no address');
  return spec;
}

// Content as the contract defines it.
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

function serve(spec) {
  const body = page(spec.size);
  const server = http.createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
    response.end(body);
  });
  server.on('error', (error) => {
    process.stderr.write(`node: ${error.message}\n`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(spec.listen);
  server.listen({ host, port: Number(port), backlog: BACKLOG }, () => {
    const bound = server.address();
    const ip = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
    emit({ event: 'ready', address: `${ip}:${bound.port}` });
  });
}

const spec = parse(process.argv.slice(2));
if (spec.role === 'describe') {
  const version = process.versions.node;
  emit({ event: 'describe', name: 'node', version, roles: ['server'], layers: ['http'], workloads: ['crr', 'rr'] });
} else {
  serve(spec);
}
