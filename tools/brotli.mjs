// Writes a copy packed by Brotli beside each of the given files.
import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";

const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
for (const path of process.argv.slice(2)) {
  writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path), { params }));
}
