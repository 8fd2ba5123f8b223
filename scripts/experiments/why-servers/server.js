// A server of HTTP/1.1 in Node.js. PLANT_US: microseconds of auditRequest.
const http = require('http');
const plant = Number(process.env.PLANT_US || 0) / 1000;
function auditRequest() {
  const end = performance.now() + plant;
  while (performance.now() < end) {}
}
http.createServer((request, answer) => {
  if (plant) auditRequest();
  answer.end('hello');
}).listen(Number(process.env.PORT), '127.0.0.1');
