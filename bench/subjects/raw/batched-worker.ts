/** The other end of batched.ts. */
import { MessagePort, workerData } from "node:worker_threads";
import { BatchedPort, type BatchedCall, type BatchedResult } from "./batched.ts";

if (!(workerData instanceof MessagePort)) throw new TypeError("this thread was given no port");
const batches = new BatchedPort<BatchedResult, BatchedCall>(workerData, ([id, a, b]) => {
  batches.send([id, a + b]);
});
