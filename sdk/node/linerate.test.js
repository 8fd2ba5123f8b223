// The tests of the library. `cargo test -p linerate --test sdk` runs them.
'use strict';

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { test } = require('node:test');
const { Content, Refusal, Tally, checkWork, connectKind, page } = require('./linerate.js');

const PERIOD = 65536;

test('a page is the published splitmix sequence', () => {
  // 0xe220a8397b1dcdaf is the first number of splitmix64 with seed 0: its bytes, lowest first, modulo 64.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const first = [0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2].map((byte) => alphabet[byte & 63]).join('');
  assert.equal(page(8).toString(), first);
  assert.equal(page(9).toString().slice(0, 8), first);
});

test('content repeats after a period, and a wrong byte is not counted', () => {
  const content = new Content(100);
  assert.deepEqual(content.piece(3 * PERIOD - 1, 2), Buffer.concat([page(PERIOD).subarray(-1), page(1)]));
  const received = Buffer.from(content.piece(5, 10));
  assert.equal(content.good(5, received), 10);
  received[3] ^= 1;
  assert.equal(content.good(5, received), 9);
});

test('latencies keep three digits, in the buckets of HdrHistogram', () => {
  const tally = new Tally({});
  for (const nanos of [0, 999, 2047, 2048, 123_456, 987_654_321]) {
    tally.latency.clear();
    tally.succeed(1, 10, 5, 5 + nanos);
    const [bucket] = tally.latency.keys();
    assert.ok(bucket >= nanos && bucket <= nanos + nanos / 1000, `${nanos} is recorded as ${bucket}`);
  }
  assert.deepEqual([tally.operations, tally.bytes], [6, 60]);
});

test('a budget of operations or of time ends', () => {
  const two = new Tally({ operations: 2 });
  assert.deepEqual([1, 2, 3].map(() => two.begin(two.start)), [true, true, false]);
  const short = new Tally({ duration_ns: 10 });
  assert.deepEqual([short.begin(short.start), short.begin(short.start + 10)], [true, false]);
});

test('a timed window ends at its end, and leaves out what was in flight', () => {
  const duration = 10;
  const tally = new Tally({ workload: 'rr', duration_ns: duration, operations: 9 });
  const { start } = tally;
  tally.succeed(1, 5, start, start + 3);
  tally.succeed(1, 5, start, start + duration + 1);
  tally.fail('reset', start + duration + 1);
  tally.fail('timeout', start + duration + 1);
  assert.deepEqual([tally.operations, tally.bytes, tally.inFlight, tally.errors], [1, 5, 3, { timeout: 1 }]);
  assert.deepEqual([tally.latency.size, tally.windowEnd()], [1, start + duration]);
});

test('a window whose operations are used up ends with the last of them, and a stream with its last transfer', () => {
  const tally = new Tally({ workload: 'rr', duration_ns: 1e9, operations: 2 });
  tally.succeed(1, 1, tally.start, tally.start + 10);
  assert.equal(tally.windowEnd(), tally.start + 1e9);
  tally.succeed(1, 1, tally.start, tally.start + 20);
  assert.equal(tally.windowEnd(), tally.start + 20);
  const stream = new Tally({ workload: 'stream', duration_ns: 100, bytes: 7 });
  stream.succeed(1, 7, stream.start, stream.start + 20);
  assert.equal(stream.windowEnd(), stream.start + 100);
  stream.succeed(1, 7, stream.start, stream.start + 120);
  assert.deepEqual([stream.windowEnd(), stream.operations, stream.inFlight], [stream.start + 120, 2, 0]);
});

test('work without its numbers is refused', () => {
  const stream = { role: 'client', workload: 'stream', size: 1024, bytes: 1, options: { direction: 'both' } };
  const rr = { role: 'client', workload: 'rr', size: 64, operations: 1, options: {} };
  [stream, rr, { ...rr, role: 'server', size: 0 }].forEach(checkWork);
  const bad = [{ ...stream, bytes: 0 }, { ...stream, options: {} }, { ...rr, size: 0 }, { ...rr, operations: 0 }];
  bad.forEach((spec) => assert.throws(() => checkWork(spec), Refusal, JSON.stringify(spec)));
});

test('errors of connect(2) and of TLS have the kinds of the contract', () => {
  const kinds = { ECONNREFUSED: 'connect_refused', ETIMEDOUT: 'connect_timeout', EMFILE: 'descriptor_exhausted',
    ERR_TLS_CERT_ALTNAME_INVALID: 'tls_failed', EHOSTUNREACH: 'connect_failed', HPE_INVALID_CONSTANT: 'malformed' };
  for (const [code, kind] of Object.entries(kinds)) assert.equal(connectKind({ code, message: '' }), kind);
});

test('a program runs what it implements, and refuses all else', () => {
  const program = "{name: 'p', version: '1', roles: ['client'], layers: ['tcp'], workloads: ['rr']}";
  const code = `require('./linerate.js').start(${program}, (spec) => console.log(spec.connections))`;
  const run = (texts) => spawnSync(process.execPath, ['-e', code, 'p', ...texts], { cwd: __dirname, encoding: 'utf8' });
  const spec = { contract: 3, role: 'client', layer: 'tcp', workload: 'rr', connect: '127.0.0.1:1' };
  const good = run([JSON.stringify(spec)]);
  assert.deepEqual([good.status, good.stdout], [0, '1\n'], good.stderr);
  assert.equal(JSON.parse(run([JSON.stringify({ ...spec, role: 'describe' })]).stdout).event, 'describe');
  const refused = [
    [2, 'sdk/CONTRACT.md', []],
    [2, 'sdk/CONTRACT.md', ['no']],
    [2, 'contract 1', [JSON.stringify({ ...spec, contract: 1 })]],
    [2, '"conections" is not known; nearest: "connections"', [JSON.stringify({ ...spec, conections: 2 })]],
    [2, '"options.bufer" is not known', [JSON.stringify({ ...spec, options: { bufer: 1 } })]],
    [2, 'no address', [JSON.stringify({ ...spec, connect: undefined })]],
    [127, 'layer "tls"', [JSON.stringify({ ...spec, layer: 'tls' })]],
    [127, 'several threads', [JSON.stringify({ ...spec, threads: 2 })]],
  ];
  for (const [status, part, texts] of refused) {
    const { status: ended, stderr } = run(texts);
    assert.ok(ended === status && stderr.includes(part), `${texts}: ${ended}: ${stderr}`);
  }
});
