/** The other end of value.ts. */
import { MessagePort, workerData } from "node:worker_threads";
import type { ValueRequest } from "./value.ts";

const { port, elements }: { readonly port: unknown; readonly elements: unknown } = workerData;
if (!(port instanceof MessagePort)) throw new TypeError("this thread was given no port");
const values = Float64Array.from({ length: Number(elements) }, (_, index) => index);

port.on("message", (how: ValueRequest) => {
  if (how === "clone") return port.postMessage(values);
  const shared = new Float64Array(new SharedArrayBuffer(values.byteLength));
  shared.set(values);
  port.postMessage(shared);
});
