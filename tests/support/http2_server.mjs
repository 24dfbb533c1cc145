// A target that offers HTTP/2 (the implementation of Node). Prints its port, and answers by the path of a request.
import http2 from "node:http2";
import { readFileSync } from "node:fs";

const [certificate, key, streams] = process.argv.slice(2);
const server = http2.createSecureServer({
  cert: readFileSync(certificate),
  key: readFileSync(key),
  settings: { maxConcurrentStreams: Number(streams) },
});
const { NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR } = http2.constants;
let sessions = 0;
let most = 0;
let open = 0;
let resets = 0;
const held = [];
const refused = new Set();

server.on("session", (session) => {
  sessions += 1;
  session.on("error", () => {});
});

function answer(stream, body, status = 200) {
  if (stream.destroyed) return;
  stream.respond({ ":status": status, "content-type": "application/json", "X-Seen": "yes" });
  stream.end(body);
}

server.on("stream", (stream, headers) => {
  open += 1;
  most = Math.max(most, open);
  let size = 0;
  stream.on("error", () => {});
  stream.on("data", (part) => (size += part.length));
  stream.on("close", () => {
    open -= 1;
    if (stream.rstCode !== 0) resets += 1;
  });
  stream.on("end", () => {
    const path = headers[":path"];
    if (path === "/facts") answer(stream, JSON.stringify({ output: { sessions, most, resets } }));
    else if (path === "/size") answer(stream, JSON.stringify({ output: { size } }));
    else if (path === "/headers") answer(stream, JSON.stringify({ output: headers }));
    else if (path === "/long") answer(stream, "x".repeat(2_000_000));
    else if (path === "/never") return;
    else if (path === "/wait") {
      held.push(stream);
      if (held.length === 20) held.splice(0).forEach((each) => answer(each, ""));
    } else if (path === "/farewell") {
      stream.session.goaway();
      setTimeout(() => answer(stream, ""), 50);
    } else if (path === "/refuse-once" && !refused.has(path)) {
      refused.add(path);
      stream.close(NGHTTP2_REFUSED_STREAM);
    } else if (path === "/refuse") stream.close(NGHTTP2_REFUSED_STREAM);
    else if (path === "/reset") stream.close(NGHTTP2_INTERNAL_ERROR);
    else if (path === "/away") {
      answer(stream, "");
      stream.session.close();
    } else if (path === "/die") stream.session.destroy();
    else answer(stream, "", path === "/fail" ? 500 : 200);
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
