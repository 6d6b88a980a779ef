/** The other end of port.ts. */
import { MessagePort, workerData } from "node:worker_threads";
import type { RawCall, RawResult } from "./port.ts";

if (!(workerData instanceof MessagePort)) throw new TypeError("this thread was given no port");
const port = workerData;

port.on("message", ({ id, a, b }: RawCall) => {
  port.postMessage({ id, result: a + b } satisfies RawResult);
});
