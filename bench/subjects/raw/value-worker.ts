/** The other end of value.ts. */
import { type MessagePort, workerData } from "node:worker_threads";
import type { ValueRequest } from "./value.ts";

const { port, elements } = workerData as { readonly port: MessagePort; readonly elements: number };
const values = Float64Array.from({ length: elements }, (_, index) => index);

port.on("message", (how: ValueRequest) => {
  if (how === "clone") return port.postMessage(values);
  const shared = new Float64Array(new SharedArrayBuffer(values.byteLength));
  shared.set(values);
  port.postMessage(shared);
});
