/** Reads batches of one channel, in order. */
import { RaySystemError } from "../../shared/errors.ts";
import type { Encoded } from "../codec.ts";
import type { Batch, CallShape, Message, Route } from "../message.ts";
import { Cursor } from "./cursor.ts";
import { codes, frames, readers } from "./frames.ts";

/** Far above what a session has: routes of all living actors and functions that one peer calls. */
const maxRoutes: number = 2 ** 20;

/** All routes that a peer names together: their targets, methods and shapes. */
const maxRouteBytes: number = 256 * 1024 ** 2;

/** Each of these; a task's says where its function is and what was given out for it. */
const maxNameBytes: number = 1024 ** 2;

const noDependencies: readonly Encoded[] = [];

/** It remembers the routes that were named. */
export class BatchReader {
  readonly #isAhead: boolean;
  readonly #maxRouteBytes: number;
  #routes: Route[] = [];
  readonly #routeSizes: number[] = [];
  #routeBytes = 0;

  /** @param isAhead each batch is read again later; calls are skipped, for lack of their routes */
  constructor(isAhead = false, routeBytes: number = maxRouteBytes) {
    this.#isAhead = isAhead;
    this.#maxRouteBytes = routeBytes;
  }

  /** @throws RaySystemError or RangeError on bytes that are not a batch */
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

  /** Undefined where it is only looked at. */
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
  return shape === "" ? { target, method } : { target, method, shape: shapeOf(JSON.parse(shape)) };
}

/** @throws RaySystemError for what is none */
function shapeOf(value: unknown): CallShape {
  const { group, returns, ahead, name } = (value ?? {}) as Record<keyof CallShape, unknown>;
  const isText = (one: unknown): boolean => one === undefined || typeof one === "string";
  const isCount = (one: unknown): boolean => one === undefined || Number.isSafeInteger(one);
  if (isText(group) && isText(name) && isCount(ahead) && (isCount(returns) || isText(returns))) {
    return value as CallShape;
  }
  throw new RaySystemError("a call of no known shape");
}
