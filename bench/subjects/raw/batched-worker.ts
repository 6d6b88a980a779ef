/** The other end of batched.ts. */
import { type MessagePort, workerData } from "node:worker_threads";
import { BatchedPort, type BatchedCall, type BatchedResult } from "./batched.ts";

const batches = new BatchedPort<BatchedResult, BatchedCall>(
  workerData as MessagePort,
  ([id, a, b]) => {
    batches.send([id, a + b]);
  },
);
