/**
 * The body of a request: kept within limits, or dropped in such a way that the client can read why.
 */
import type { IncomingMessage } from "node:http";
import { bodyTooLarge } from "./guard.ts";
import type { HttpRefusal } from "./refusal.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * A client that still sends cannot read the answer once the connection closes, so the endpoint
 * reads the rest for a short time.
 */
export const lingerMs = 1000;
const lingerBytes = 1024 * 1024;

/**
 * Reads the whole body. Rejects with an HttpRefusal when it is too large or `keep` refuses it, and
 * with an error when the client has gone.
 *
 * @param over aborted when the exchange is over
 * @param keep called with the bytes of each part before it is kept
 */
export function bodyOf(
  request: IncomingMessage,
  over: AbortSignal,
  maxBytes: number,
  keep: (bytes: number) => HttpRefusal | undefined,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer): void => {
    length += chunk.length;
    const refusal = length > maxBytes ? bodyTooLarge(maxBytes) : keep(chunk.length);
    if (refusal === undefined) return void chunks.push(chunk);
    request.off("data", onData);
    chunks.length = 0;
    reject(refusal);
  };
  request.on("data", onData);
  request.once("end", () => resolve(Buffer.concat(chunks)));
  request.on("error", reject);
  // A request that is answered before it has arrived gets no event at its end.
  const onOver = (): void => reject(new Error("the client has gone, or has its answer"));
  if (over.aborted) onOver();
  else over.addEventListener("abort", onOver, { once: true });
  return promise;
}

/**
 * Reads the rest of a refused body and drops it. Calls back when it has ended, or enough of it was
 * dropped.
 */
export function dropRest(request: IncomingMessage, done: () => void): void {
  let bytes = 0;
  const timer = timers.setTimeout(finish, lingerMs);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > lingerBytes) finish();
  });
  request.once("close", finish);
  request.on("error", finish);
  function finish(): void {
    timers.clearTimeout(timer);
    request.off("close", finish);
    done();
  }
}
