/**
 * Reads the batches of one channel, in order.
 */
import { RaySystemError } from "../../shared/errors.ts";
import type { Encoded } from "../codec.ts";
import type { Batch, CallShape, Message, Route } from "../message.ts";
import { Cursor } from "./cursor.ts";
import { codes, frames, readers } from "./message-encoding.ts";

/**
 * This limit is far above a session's need: the routes of all living actors and functions that one
 * peer calls.
 */
const maxRoutes: number = 2 ** 20;

/** The limit for all routes that a peer names: their targets, methods and shapes, in bytes. */
const maxRouteBytes: number = 256 * 1024 ** 2;

/**
 * The limit for each name, in bytes. The name of a task contains the place of its function and its
 * assignment.
 */
const maxNameBytes: number = 1024 ** 2;

const noDependencies: readonly Encoded[] = [];

/** Reads batches and remembers the routes that they name. */
export class BatchReader {
  readonly #isAhead: boolean;
  readonly #maxRouteBytes: number;
  #routes: Route[] = [];
  readonly #routeSizes: number[] = [];
  #routeBytes = 0;

  /**
   * @param isAhead whether each batch is read again later; calls are then skipped, because their
   * routes are unknown
   */
  constructor(isAhead = false, routeBytes: number = maxRouteBytes) {
    this.#isAhead = isAhead;
    this.#maxRouteBytes = routeBytes;
  }

  /** @throws RaySystemError on bytes that are not a batch */
  read(batch: Batch, onMessage: (message: Message) => void): void {
    const cursor = new Cursor(batch, this.#isAhead);
    while (!cursor.done) {
      const code = cursor.uint8();
      const head = cursor.uint32();
      if (code === frames.result.code) {
        onMessage({ kind: "result", id: head, value: cursor.body() });
      } else if (code === codes.call) {
        const call = this.#call(head, cursor);
        if (call !== undefined) onMessage(call);
      } else if (code === codes.route) {
        this.#named(head, cursor);
      } else {
        const read = readers[code];
        if (read === undefined) throw new RaySystemError(`unknown frame kind ${code}`);
        onMessage(read(head, cursor));
      }
    }
  }

  /** Returns undefined when the reader only looks ahead. */
  #call(id: number, cursor: Cursor): Message | undefined {
    const sequence = cursor.float64();
    const index = cursor.uint32();
    const route = this.#routes[index];
    if (route === undefined && !this.#isAhead) {
      throw new RaySystemError(`call ${id} names an unknown route`);
    }
    const count = cursor.uint32();
    const args = cursor.body();
    const dependencies = count === 0 ? noDependencies : cursor.bodies(count);
    if (route === undefined || this.#isAhead) return undefined;
    return { kind: "call", id, sequence, route, arguments: args, dependencies };
  }

  #named(id: number, cursor: Cursor): void {
    if (id >= maxRoutes) throw new RaySystemError(`route ${id} is over the limit`);
    const start = cursor.at;
    const route = readRoute(cursor);
    const size = cursor.at - start;
    this.#routeBytes += size - (this.#routeSizes[id] ?? 0);
    this.#routeSizes[id] = size;
    if (this.#routeBytes > this.#maxRouteBytes) {
      throw new RaySystemError(`routes of ${this.#routeBytes} bytes are over the limit`);
    }
    this.#routes[id] = route;
  }
}

function readRoute(cursor: Cursor): Route {
  const target = cursor.text(maxNameBytes);
  const method = cursor.text(maxNameBytes);
  const shape = cursor.text(maxNameBytes);
  return shape === "" ? { target, method } : { target, method, shape: shapeOf(jsonOf(shape)) };
}

/** @throws RaySystemError for what is no JSON */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unknownShape();
  }
}

/** @throws RaySystemError for a malformed shape */
function shapeOf(value: unknown): CallShape {
  const { group, returns, ahead, name } = (value ?? {}) as Record<keyof CallShape, unknown>;
  const isText = (one: unknown): boolean => one === undefined || typeof one === "string";
  const isCount = (one: unknown): boolean => one === undefined || Number.isSafeInteger(one);
  if (isText(group) && isText(name) && isCount(ahead) && (isCount(returns) || isText(returns))) {
    return value as CallShape;
  }
  throw unknownShape();
}

function unknownShape(): RaySystemError {
  return new RaySystemError("malformed call from peer: its shape is unknown");
}
