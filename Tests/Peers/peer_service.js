// The same in node: `node peer_service.js PORT`.
const { createHash } = require("node:crypto");

require("node:http").createServer((request, response) => {
  const digest = createHash("sha256");
  request.on("data", (piece) => digest.update(piece));
  request.on("end", () => {
    const fields = [];
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      fields.push([request.rawHeaders[at].toLowerCase(), request.rawHeaders[at + 1]]);
    }
    const path = decodeURIComponent(request.url.split("?")[0]);
    const text = JSON.stringify({
      method: request.method, target: request.url, path, fields, body: digest.digest("hex"),
    });
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(text);
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
