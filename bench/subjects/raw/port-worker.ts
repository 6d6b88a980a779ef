/** The other end of port.ts. */
import { type MessagePort, workerData } from "node:worker_threads";
import type { RawCall, RawResult } from "./port.ts";

const port = workerData as MessagePort;

port.on("message", ({ id, a, b }: RawCall) => {
  port.postMessage({ id, result: a + b } satisfies RawResult);
});
