/**
 * Gathers the messages of one turn as one batch. A session names a route (target and method) once,
 * and refers to it by number afterwards.
 */
import type { Batch, CallMessage, Message, Route } from "../message.ts";
import { FrameBuffer } from "./frame-buffer.ts";
import type { Encoded } from "../codec.ts";
import { outOfBandBytes } from "../values/encodable.ts";
import { codes, frames, writeFrame } from "./message-encoding.ts";
import { headRoom, namedRoutes } from "./layout.ts";

/** Bytes of memory that a frame of calls and results needs for a body, and its own fields. */
function bodyRoom({ start, end }: Encoded): number {
  const size = end - start;
  return size >= outOfBandBytes ? headRoom : headRoom + size;
}

export class BatchWriter {
  readonly #frame: FrameBuffer = new FrameBuffer();
  #routes: WeakMap<Route, number> = new WeakMap();
  #routeCount = namedRoutes;
  /**
   * Numbers of garbage-collected routes. New routes reuse them, so that the peer's table does not
   * grow.
   */
  readonly #freeRoutes: number[] = [];
  readonly #droppedRoutes: FinalizationRegistry<number> = new FinalizationRegistry((index) =>
    this.#freeRoutes.push(index),
  );
  readonly #named: Route[] = [];
  #nextNamed = 0;

  get length(): number {
    return this.#frame.length;
  }

  /** The buffers of a value with SharedArrayBuffers of the user, if the batch contains one. */
  get live(): readonly SharedArrayBuffer[] | undefined {
    return this.#frame.live;
  }

  /** Returns the bytes of the message, in band and out of band. */
  write(message: Message): number {
    const frame = this.#frame;
    const before = frame.length;
    let outside: number;
    // Most messages are calls and results, so these skip the table.
    if (message.kind === "call") {
      outside = this.#call(message);
    } else if (message.kind === "result") {
      frame.head(frames.result.code, message.id, bodyRoom(message.value));
      outside = frame.body(message.value);
    } else {
      outside = writeFrame(frame, message);
    }
    return frame.length - before + outside;
  }

  /** Returns the batch and starts the next one. */
  take(): Batch {
    return this.#frame.take();
  }

  #call({ id, sequence, route, arguments: args, dependencies }: CallMessage): number {
    const index = this.#route(route);
    const frame = this.#frame;
    frame.head(codes.call, id, bodyRoom(args));
    frame.callFields(sequence, index, dependencies.length);
    let outside = frame.body(args);
    for (const dependency of dependencies) outside += frame.body(dependency);
    return outside;
  }

  #route(route: Route): number {
    const known = this.#routes.get(route);
    if (known !== undefined && (known >= namedRoutes || this.#named[known] === route)) return known;
    const index = route.shape?.name === undefined ? this.#number(route) : this.#name(route);
    this.#routes.set(route, index);
    this.#frame.head(codes.route, index);
    this.#frame.text(route.target);
    this.#frame.text(route.method);
    this.#frame.text(route.shape === undefined ? "" : JSON.stringify(route.shape));
    return index;
  }

  #number(route: Route): number {
    const index = this.#freeRoutes.pop() ?? this.#routeCount++;
    this.#droppedRoutes.register(route, index);
    return index;
  }

  #name(route: Route): number {
    const index = this.#nextNamed;
    this.#nextNamed = (index + 1) % namedRoutes;
    this.#named[index] = route;
    return index;
  }
}
