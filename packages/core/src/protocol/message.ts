/** The messages of two runtimes over a channel: one union. `frames` has its layout in bytes. */
import type { Encoded } from "./codec.ts";

/** Where a call goes: an actor's method, or a task's function. The sender compares by identity. */
export interface Route {
  readonly target: string;
  readonly method: string;
  /** `Class.method`, for messages to people; it does not travel. */
  readonly label?: string;
  /** Where it is not the plain one: one value, the method's own concurrency group. */
  readonly shape?: CallShape;
}

/** How a call is run and answered. */
export interface CallShape {
  readonly group?: string;
  /** How many values it returns; "streaming" for the items of a generator. */
  readonly returns?: number | "streaming";
  /** How many items of a stream may be made ahead of its consumer. */
  readonly ahead?: number;
  /** The call's own name; it is not kept for the next one. */
  readonly name?: string;
}

export type Message =
  | {
      readonly kind: "call";
      readonly id: number;
      /** Number of its first return value at the caller: with the caller's id, the task's id. */
      readonly sequence: number;
      readonly route: Route;
      readonly arguments: Encoded;
      /** Values of top-level ObjectRef arguments, for the slots inside `arguments`. */
      readonly dependencies: readonly Encoded[];
    }
  | { readonly kind: "result"; readonly id: number; readonly value: Encoded }
  /** The result of a call that returns several values. */
  | { readonly kind: "results"; readonly id: number; readonly values: readonly Encoded[] }
  | { readonly kind: "failure"; readonly id: number; readonly error: Encoded }
  /** The actor ended before the call did: ask the directory what became of it. */
  | { readonly kind: "gone"; readonly id: number }
  /** The actor, or that life of it, is not here: the call never started. */
  | { readonly kind: "absent"; readonly id: number }
  /** The sender is about to end: calls that it has not answered have never begun. */
  | { readonly kind: "leaving" }
  /** The answer to a call that was cancelled. */
  | { readonly kind: "cancelled"; readonly id: number }
  /** An item of a stream, which ends with a result (how many there were) or a failure. */
  | {
      readonly kind: "item";
      readonly id: number;
      readonly index: number;
      readonly value: Encoded;
    }
  /** The consumer of a stream has taken so many of its items. */
  | { readonly kind: "consumed"; readonly id: number; readonly count: number }
  /** Asks to end a call early, and what it called if `recursive`. */
  | { readonly kind: "cancel"; readonly id: number; readonly recursive: boolean }
  /** A signal among the arguments of a call is aborted, the one of that number, for that reason. */
  | {
      readonly kind: "abort";
      readonly id: number;
      readonly index: number;
      readonly reason: Encoded;
    }
  /** Asks the owner for a value. Not `whole`, the result may be a stub of a value that is elsewhere. */
  | {
      readonly kind: "fetch";
      readonly id: number;
      readonly objectId: string;
      readonly whole: boolean;
    }
  /** Answers a fetch of a big value: its batch without its buffers, which follow as they are wanted. */
  | {
      readonly kind: "parts";
      readonly id: number;
      readonly bytes: Uint8Array;
      /** The size of each buffer, in bytes. */
      readonly sizes: readonly number[];
    }
  /** So many more parts of that answer; none at all, ever, if `count` is 0. */
  | { readonly kind: "want"; readonly id: number; readonly count: number }
  /** The value of an object of the sender, unasked: its host is about to end. */
  | { readonly kind: "value"; readonly objectId: string; readonly value: Encoded }
  /** Asks the owner to cancel the call that makes an object of its. */
  | {
      readonly kind: "cancel-object";
      readonly objectId: string;
      readonly recursive: boolean;
      readonly force: boolean;
    }
  /** Changes how many references `holder` has to an object of the receiver. */
  | {
      readonly kind: "reference";
      readonly objectId: string;
      readonly holder: string;
      readonly change: number;
    };

/** What a call is answered with, at its end; a fetch gets a result or a failure. */
export type Answer = Extract<
  Message,
  { readonly kind: "result" | "results" | "failure" | "gone" | "absent" | "cancelled" }
>;

/** What one side tells the other, and gets no answer to. */
export type Notice = Extract<
  Message,
  { readonly kind: "cancel" | "cancel-object" | "consumed" | "reference" | "value" | "item" }
>;

/** The count of a consumer that takes nothing any more while the producer runs on. */
export const unlimitedItems: number = 0xffffffff;
/** The count of a consumer that has left: the producer ends. */
export const noMoreItems: number = 0xfffffffe;

/** Many messages, as they travel together. */
export interface Batch {
  readonly bytes: Uint8Array;
  readonly buffers: readonly SharedArrayBuffer[];
  /** A piece of an answer that comes in parts; then there is nothing else in it. */
  readonly part?: Part;
}

export interface Part {
  /** Of the fetch that it answers. */
  readonly id: number;
  /** What it says; where it arrives, the place that it was meant for. */
  readonly data: Uint8Array;
}
