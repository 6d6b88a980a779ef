/**
 * Node's settings and code around a program: the permission model denies files outside of its
 * folder, other processes, threads, add-ons and WASI. The network, which this version of Node does
 * not deny, is hidden by a module that loads first. A malicious program can find it; the kernel's
 * wall is in `isolation/`.
 */

/**
 * Returns what loads before the program. It reports "ready" (confined-child.ts), and closes the
 * channel of a function's value if none is called, and what was inherited. Node writes to pipes
 * asynchronously, and `process.exit()` and uncaught errors drop what waits, so the outputs become
 * blocking.
 */
export function javascriptGuard(inherited: readonly number[]): string {
  return `"use strict";
{
  const { closeSync, writeSync } = require("node:fs");
  for (const descriptor of ${JSON.stringify(inherited)}) {
    try { closeSync(descriptor); } catch { /* An isolation closed it. */ }
  }
  writeSync(5, "ready");
  closeSync(5);
  if (!process.argv[1].endsWith("caller.mjs")) closeSync(3);
  for (const output of [process.stdout, process.stderr]) output._handle?.setBlocking?.(true);
}
const hidden = new Set(["net", "tls", "http", "https", "http2", "dgram", "dns", "dns/promises", "cluster", "inspector", "inspector/promises", "quic", "repl", "test"]);
const isHidden = (name) => hidden.has(String(name).replace(/^node:/, ""));
const denied = (name) => Object.assign(new Error("the sandbox denies " + name), { code: "ERR_ACCESS_DENIED" });
require("node:module").registerHooks({
  resolve(specifier, context, next) {
    if (isHidden(specifier)) throw denied(specifier);
    return next(specifier, context);
  },
});
const { getBuiltinModule } = process;
const hide = (object, name, value) =>
  Object.defineProperty(object, name, { value, writable: false, configurable: false, enumerable: false });
hide(process, "getBuiltinModule", (name) => {
  if (isHidden(name)) throw denied(name);
  return getBuiltinModule.call(process, name);
});
for (const name of ["kill", "_kill"]) hide(process, name, () => { throw denied("process.kill"); });
for (const name of ["fetch", "WebSocket", "EventSource"]) hide(globalThis, name, undefined);
`;
}

/**
 * Calls the function that the program's end (`callable`) names, with arguments from standard input
 * as JSON, one per line, and writes { "value": its result } to file descriptor 3. A BigInt is a
 * whole number there, whatever the program makes of it in JSON.
 */
export const javascriptCaller: string = `import { readFileSync, writeFileSync } from "node:fs";
const { rawJSON, stringify } = JSON;
function exactly(key, value) {
  const own = this[key];
  return typeof own === "bigint" ? rawJSON(own.toString()) : value;
}
const lines = readFileSync(0, "utf8").split("\\n").filter((line) => line.trim() !== "");
await import("./program.js");
const value = await globalThis[Symbol.for("rayling.callable")](...lines.map((line) => JSON.parse(line)));
writeFileSync(3, stringify({ value: value ?? null }, exactly));
`;

/**
 * Returns code to append to a program: it names the method of a class Solution, or the function.
 */
export function callable(name: string): string {
  return `\n;globalThis[Symbol.for("rayling.callable")] = typeof Solution === "function" && "${name}" in Solution.prototype ? (...args) => new Solution().${name}(...args) : ${name};\n`;
}
