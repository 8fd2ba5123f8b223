// A shop's list of items as JSON. It listens on $PORT.
"use strict";

const http = require("node:http");

function items() {
  const all = [];
  for (let id = 1; id <= 20; id += 1) {
    all.push({ id, name: `item ${id}`, price: id * 1.5 });
  }
  return all;
}

function answer(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (url.pathname !== "/api/items") {
    response.writeHead(404, { "Content-Type": "application/json" });
    response.end("{}");
    return;
  }
  const name = url.searchParams.get("name") ?? "";
  const found = items().filter((one) => one.name.includes(name));
  const body = JSON.stringify(found);
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

const server = http.createServer(answer);
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1");

process.on("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
