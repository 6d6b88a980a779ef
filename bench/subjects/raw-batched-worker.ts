/** The other end of raw-batched.ts. */
import { type MessagePort, workerData } from "node:worker_threads";
import { type BatchedCall, type BatchedResult, batchedPort } from "./raw-batched.ts";

const batches = batchedPort<BatchedResult, BatchedCall>(workerData as MessagePort, ([id, a, b]) => {
  batches.send([id, a + b]);
});
