/**
 * What Node runs before and around a program: the permission model denies files outside of its folder, other processes, threads, add-ons and WASI; what it does not deny in this version
 * of Node, the network, a module that is loaded first hides. A program that is made to find it can; the wall of the kernel around it is `isolation/`.
 */

/** Loaded before the program. Says that it is ready (confined-child.ts), and closes what only a function's value goes to where none is called. */
export const javascriptGuard: string = `"use strict";
{
  const { closeSync, writeSync } = require("node:fs");
  writeSync(5, "ready");
  closeSync(5);
  if (!process.argv[1].endsWith("caller.mjs")) closeSync(3);
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

/**
 * Calls the function that the program's end (\`callable\`) names, with the arguments that stand on standard input as JSON, one per line, and writes { "value": what it returned } to
 * file descriptor 3.
 */
export const javascriptCaller: string = `import { readFileSync, writeFileSync } from "node:fs";
const lines = readFileSync(0, "utf8").split("\\n").filter((line) => line.trim() !== "");
await import("./program.js");
const value = await globalThis[Symbol.for("rayling.callable")](...lines.map((line) => JSON.parse(line)));
writeFileSync(3, JSON.stringify({ value: value ?? null }));
`;

/** Put behind a program: the method of that name of a class Solution, or the function of that name. */
export function callable(name: string): string {
  return `\n;globalThis[Symbol.for("rayling.callable")] = typeof Solution === "function" && "${name}" in Solution.prototype ? (...args) => new Solution().${name}(...args) : ${name};\n`;
}
