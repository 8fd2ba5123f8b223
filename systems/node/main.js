// Node's http module as a system of linerate (sdk/CONTRACT.md): main.js SPEC.
//
//	spec -> http.Server on the event loop -> "ready" on stdout
'use strict';

const http = require('node:http');
const { listen, page, start } = require('./linerate.js');

function serve(spec) {
  const body = page(spec.size);
  const server = http.createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
    response.end(body);
  });
  listen(server, spec);
}

const version = process.versions.node;
start({ name: 'node', version, roles: ['server'], layers: ['http'], workloads: ['crr', 'rr'] }, serve);
