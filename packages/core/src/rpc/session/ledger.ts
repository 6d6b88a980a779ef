/**
 * Counts what one peer has under way here: calls that did not end in the turn in which they
 * arrived, with the bytes of their arguments, and fetches.
 *
 * An honest peer keeps to its credit (credit.ts, call-window.ts), so a peer that has more under way
 * loses its connection. A call that is answered here may still be unanswered for the peer, never
 * the other way round, so an honest peer is never refused.
 */
import { type Encoded, sizeOf } from "../../protocol/codec.ts";
import type { CallMessage } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { freeCalls } from "./call-window.ts";

/**
 * Calls and fetches that one peer may have under way here, together; far more than its credit
 * allows an honest one.
 */
const maxInFlight: number = 2 ** 22;

/** A session asks for no more values at once, and answers no more. */
export const maxFetches: number = 2 ** 18;

/** Size of the reason of an abort: an error with its stack and causes, not data. */
export const maxReasonBytes: number = 64 * 1024;

/** Size of the reasons of all calls without an answer: as many as there may be, each with one. */
const maxReasonsBytes: number = 4096 * maxReasonBytes;

/**
 * Calls to a life of an actor that is over, with answers on their way, may meet calls to its next
 * life.
 */
const incarnationsAtOnce = 2;

/**
 * A value that is kept must fill at least this part of the frame it arrived in; a smaller one gets
 * memory of its own.
 */
const leastKeptShare: number = 1 / 16;
/** A frame of this size may be kept whole. */
const smallFrameBytes = 4096;

export interface LedgerParts {
  /** Arguments that may be held, as credit allows. */
  readonly maxBytes: number;
  /** Calls of that target that may run together; undefined where nothing waits. */
  readonly concurrencyOf: (target: string) => number | undefined;
}

interface Held {
  calls: number;
}

export class Ledger {
  readonly #parts: LedgerParts;
  /** By the caller's id, which is a slot number and so small. */
  readonly #bytesOf: number[] = [];
  readonly #heldOf: (Held | undefined)[] = [];
  readonly #held: Map<string, Held> = new Map();
  readonly #fetches: Set<number> = new Set();
  #bytes = 0;
  /** Part of them. */
  readonly #reasonBytesOf: Map<number, number> = new Map();
  #reasonBytes = 0;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** Bytes of arguments that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws RaySystemError for a call that its peer may not make now */
  checkCall(id: number, target: string): void {
    if (id >= maxInFlight) throw new RaySystemError(`call ${id} is over the limit`);
    if (this.#heldOf[id] !== undefined || (this.#fetches.size > 0 && this.#fetches.has(id))) {
      throw new RaySystemError(`call ${id} is under way`);
    }
    if (this.#bytes >= this.#parts.maxBytes) this.#checkCredit(target);
  }

  #checkCredit(target: string): void {
    const concurrency = this.#parts.concurrencyOf(target);
    const calls = this.#held.get(target)?.calls ?? 0;
    if (concurrency === undefined || calls < incarnationsAtOnce * freeCalls(concurrency)) return;
    throw new RaySystemError(
      `a call to ${target} without credit: ${calls} to it are under way, and arguments of ${this.#bytes} bytes, of ${this.#parts.maxBytes}`,
    );
  }

  /** @throws RaySystemError for a fetch that its peer may not make now */
  beginFetch(id: number): void {
    if (id >= maxInFlight) throw new RaySystemError(`fetch ${id} is over the limit`);
    if (this.#fetches.has(id) || this.#heldOf[id] !== undefined) {
      throw new RaySystemError(`fetch ${id} is under way`);
    }
    if (this.#fetches.size >= maxFetches) {
      throw new RaySystemError(`more than ${maxFetches} fetches are under way`);
    }
    this.#fetches.add(id);
  }

  /**
   * A call goes on after the turn in which it arrived.
   *
   * @param isRead nobody looks at its arguments any more
   */
  hold(call: CallMessage, isRead: boolean): void {
    const { id, route } = call;
    let bytes = sizeOf(call.arguments);
    for (const dependency of call.dependencies) bytes += sizeOf(dependency);
    this.#bytes += bytes;
    this.#bytesOf[id] = bytes;
    let held = this.#held.get(route.target);
    if (held === undefined) {
      held = { calls: 0 };
      this.#held.set(route.target, held);
    }
    held.calls += 1;
    this.#heldOf[id] = held;
    if (!isRead) keepAlone(call);
  }

  /**
   * A signal of a call is aborted; the reason counts as arguments do.
   *
   * @throws RaySystemError for more than the peer may say
   */
  aborted(id: number, bytes: number): void {
    if (bytes > maxReasonBytes) {
      throw new RaySystemError(`a reason of ${bytes} bytes is over the limit of ${maxReasonBytes}`);
    }
    if (this.#heldOf[id] === undefined) return;
    this.#bytes += bytes;
    this.#bytesOf[id] = (this.#bytesOf[id] ?? 0) + bytes;
    this.#reasonBytesOf.set(id, (this.#reasonBytesOf.get(id) ?? 0) + bytes);
    this.#reasonBytes += bytes;
    if (this.#reasonBytes > maxReasonsBytes) {
      throw new RaySystemError(`reasons of ${this.#reasonBytes} bytes are over the limit`);
    }
  }

  /** It has its answer; its number is given out again from now on. */
  ended(id: number): void {
    const held = this.#heldOf[id];
    if (held !== undefined) {
      this.#heldOf[id] = undefined;
      this.#bytes -= this.#bytesOf[id] as number;
      held.calls -= 1;
      if (this.#reasonBytesOf.size > 0) this.#forgetReasons(id);
      if (held.calls === 0 && this.#held.size > namesKept) this.#forget();
    } else if (this.#fetches.size > 0) {
      this.#fetches.delete(id);
    }
  }

  #forgetReasons(id: number): void {
    this.#reasonBytes -= this.#reasonBytesOf.get(id) ?? 0;
    this.#reasonBytesOf.delete(id);
  }

  #forget(): void {
    for (const [target, { calls }] of this.#held) if (calls === 0) this.#held.delete(target);
  }
}

/** Targets without calls that are remembered. */
const namesKept = 1024;

/** A small call must not keep the big frame that it came in. */
function keepAlone(call: CallMessage): void {
  const own = alone(call.arguments);
  const dependencies = call.dependencies.map(alone);
  const isSame =
    own === call.arguments && call.dependencies.every((one, at) => one === dependencies[at]);
  // Everything that holds the call keeps this object.
  if (!isSame) Object.assign(call, { arguments: own, dependencies });
}

function alone(value: Encoded): Encoded {
  const { bytes, start, end } = value;
  const size = end - start;
  const frameBytes = bytes.buffer.byteLength;
  if (frameBytes <= smallFrameBytes || size >= frameBytes * leastKeptShare) return value;
  return { ...value, bytes: Buffer.from(bytes.subarray(start, end)), start: 0, end: size };
}
