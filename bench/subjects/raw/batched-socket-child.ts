/** The other end of batched-socket.ts: a process of its own. It ends with its socket. */
import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { BatchedCall, BatchedResult } from "./batched.ts";
import { BatchedSocket, credentialsIn } from "./batched-socket.ts";

const [place = "", certificates = ""] = process.argv.slice(2);
const batches = new BatchedSocket<BatchedResult, BatchedCall>(open(), ([id, a, b]) => {
  batches.send([id, a + b]);
});

function open(): Socket {
  const port = Number(place);
  if (!Number.isInteger(port)) return connect(place);
  const target = { host: "127.0.0.1", port };
  if (certificates === "") return connect({ ...target, noDelay: true });
  return connectSecurely({ ...target, ...credentialsIn(certificates) }).setNoDelay(true);
}
