/** The other end of batched-socket.ts: a process of its own. It ends with its socket. */
import { connect } from "node:net";
import type { BatchedCall, BatchedResult } from "./batched.ts";
import { BatchedSocket } from "./batched-socket.ts";

const socket = connect(process.argv[2] ?? "");
const batches = new BatchedSocket<BatchedResult, BatchedCall>(socket, ([id, a, b]) => {
  batches.send([id, a + b]);
});
