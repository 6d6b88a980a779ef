/** The other end of raw-port.ts. */
import { type MessagePort, workerData } from "node:worker_threads";
import type { RawCall, RawResult } from "./raw-port.ts";

const port = workerData as MessagePort;

port.on("message", ({ id, a, b }: RawCall) => {
  port.postMessage({ id, result: a + b } satisfies RawResult);
});
