/**
 * The messages of two runtimes over a channel, as one union. `frames` has their layout in bytes.
 */
import type { DeathCause } from "../shared/errors.ts";
import type { Encoded } from "./codec.ts";

/**
 * The target of a call: an actor's method, or a task's function. The sender compares routes by
 * identity.
 */
export interface Route {
  readonly target: string;
  readonly method: string;
  /** `Class.method`, for messages to people; it does not travel. */
  readonly label?: string;
  /**
   * Present unless the call is plain: it returns one value and uses the method's own concurrency
   * group.
   */
  readonly shape?: CallShape;
}

/** The options by which a call is run and answered. */
export interface CallShape {
  readonly group?: string;
  /** The number of returned values; "streaming" for the items of a generator. */
  readonly returns?: number | "streaming";
  /** The number of stream items that the producer may make ahead of its consumer. */
  readonly ahead?: number;
  /** The call's own name; later calls do not inherit it. */
  readonly name?: string;
}

export type Message =
  | {
      readonly kind: "call";
      readonly id: number;
      /**
       * The number of the call's first return value at the caller. It makes the task's id together
       * with the caller's id.
       */
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
  /**
   * The actor ended before the call did: the caller asks the directory for the reason. Or there is
   * no such task.
   */
  | { readonly kind: "gone"; readonly id: number }
  /**
   * The call never started: the actor, or that incarnation of it, is not on this host, or the task
   * is given back.
   */
  | { readonly kind: "absent"; readonly id: number }
  /** The sender is about to end: calls that it has not answered have never begun. */
  | { readonly kind: "leaving" }
  /** The answer to a call that was cancelled. */
  | { readonly kind: "cancelled"; readonly id: number }
  /** An item of a stream. The stream ends with a result (the number of items) or a failure. */
  | {
      readonly kind: "item";
      readonly id: number;
      readonly index: number;
      readonly value: Encoded;
    }
  /** The consumer of a stream has taken this many of its items. */
  | { readonly kind: "consumed"; readonly id: number; readonly count: number }
  /** Asks to end a call early, and, if `recursive`, the calls that it made. */
  | { readonly kind: "cancel"; readonly id: number; readonly recursive: boolean }
  /** The AbortSignal at `index` among the arguments of a call is aborted for that reason. */
  | {
      readonly kind: "abort";
      readonly id: number;
      readonly index: number;
      readonly reason: Encoded;
    }
  /**
   * Asks the owner for a value. Unless `whole`, the result may be a stub of a value on another
   * host. An owner asks a holder of its object for a copy by it: the result is a stub of the copy.
   */
  | {
      readonly kind: "fetch";
      readonly id: number;
      readonly objectId: string;
      readonly whole: boolean;
    }
  /** Answers a fetch of a big value: its batch without its buffers, which follow on request. */
  | {
      readonly kind: "parts";
      readonly id: number;
      readonly bytes: Uint8Array;
      /** The size of each buffer, in bytes. */
      readonly sizes: readonly number[];
    }
  /** Requests this many more parts of that answer; a `count` of 0 cancels the rest. */
  | { readonly kind: "want"; readonly id: number; readonly count: number }
  /** The value of an object of the sender, unasked: its host is about to end. */
  | { readonly kind: "value"; readonly objectId: string; readonly value: Encoded }
  /** Asks the owner to cancel the call that makes one of its objects. */
  | {
      readonly kind: "cancel-object";
      readonly objectId: string;
      readonly recursive: boolean;
      readonly force: boolean;
    }
  /** Changes the number of references that `holder` has to an object of the receiver. */
  | {
      readonly kind: "reference";
      readonly objectId: string;
      readonly holder: string;
      readonly change: number;
    };

export type CallMessage = Extract<Message, { readonly kind: "call" }>;

export type FetchMessage = Extract<Message, { readonly kind: "fetch" }>;

/** The end of a call; a fetch gets a result or a failure. */
export type Answer = Extract<
  Message,
  { readonly kind: "result" | "results" | "failure" | "gone" | "absent" | "cancelled" }
>;

/** A call or a fetch that waits for its answer. */
export interface Pending {
  /** The peer may say of it that it never began. */
  readonly isCall: boolean;
  settle(answer: Answer): void;
  /** The session is lost: there is no answer. */
  lose(reason: DeathCause): void;
  /**
   * Ends a call early.
   *
   * @throws InvalidOptionError when `force` is not allowed
   */
  cancel?(recursive: boolean, force: boolean): void;
  /** There is no memory here for a value of so many bytes. */
  refuse?(bytes: number, why: string): void;
  /** One item of its stream; the end is still to come. */
  item?(index: number, value: Encoded): void;
}

/** A message that has no answer. */
export type Notice = Extract<
  Message,
  {
    readonly kind: "cancel" | "cancel-object" | "consumed" | "reference" | "value" | "item";
  }
>;

/** The count of a consumer that takes no more items while the producer runs on. */
export const unlimitedItems: number = 0xffffffff;
/** The count of a consumer that has left: the producer ends. */
export const noMoreItems: number = 0xfffffffe;

/** Messages that travel together. */
export interface Batch {
  readonly bytes: Uint8Array;
  readonly buffers: readonly SharedArrayBuffer[];
  /** Whether the memory of `bytes` is the batch's alone: a channel may give it away. */
  readonly isOwn?: boolean;
  /** A piece of an answer that comes in parts. Such a batch contains nothing else. */
  readonly part?: Part;
}

export interface Part {
  /** The id of the fetch that it answers. */
  readonly id: number;
  /** The bytes of the piece. At the receiver they already lie at their destination. */
  readonly data: Uint8Array;
}
