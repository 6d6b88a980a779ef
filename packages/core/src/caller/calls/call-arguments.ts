/** Arguments of a call as they travel: refs among them become slots, signals are listened to. */
import {
  type Codec,
  type Encoded,
  giveBackLent,
  type PackedWindow,
  windowOf,
} from "../../protocol/codec.ts";
import { slot } from "../../protocol/values/special.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { liveEntryOf, ObjectRef } from "../../store/object-ref.ts";
import { CallSignals, SignalSlots } from "./call-signals.ts";

/** Values beside the arguments of a call, followed until the call is settled. */
export interface Companions {
  /** As they are now: they are sent with the call each time. */
  states(): Encoded[];
  /**
   * Reports changes after `states`. Further calls do nothing.
   *
   * @param tell is given the number of what has changed
   */
  listen(tell: (index: number, reason: Encoded) => void): void;
  /** The call is settled. */
  end(): void;
}

/**
 * Small, plain arguments, as most calls have: a window of the packer's memory. A million calls may
 * wait with theirs, so nothing is kept that all have alike.
 */
export class CallArguments {
  readonly #bytes: Uint8Array;
  readonly #start: number;
  readonly #end: number;

  constructor({ bytes, start, end }: PackedWindow) {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  get values(): Encoded {
    return windowOf(this.#bytes, this.#start, this.#end);
  }

  /** Entries of the top-level refs, in the order of their slots. */
  get dependencies(): readonly ObjectEntry[] {
    return none;
  }

  get signals(): Companions | undefined {
    return undefined;
  }

  /** Returns the values to somebody who reads them after the call is settled, too. */
  keep(): Encoded {
    return this.values;
  }

  /** The call is settled: nobody reads the values any more, unless they are kept. */
  letGo(): void {}
}

/** Arguments of any kind. */
export class AnyArguments extends CallArguments {
  #values: Encoded;
  readonly #dependencies: readonly ObjectEntry[];
  readonly #signals: Companions | undefined;

  constructor(
    values: Encoded,
    dependencies: readonly ObjectEntry[],
    signals: Companions | undefined,
  ) {
    super(values);
    this.#values = values;
    this.#dependencies = dependencies;
    this.#signals = signals;
  }

  override get values(): Encoded {
    return this.#values;
  }

  override get dependencies(): readonly ObjectEntry[] {
    return this.#dependencies;
  }

  override get signals(): Companions | undefined {
    return this.#signals;
  }

  override keep(): Encoded {
    if (this.#values.isLent === true) this.#values = { ...this.#values, isLent: false };
    return this.#values;
  }

  override letGo(): void {
    const values = this.#values;
    if (values.isLent !== true) return;
    // An empty value cannot be decoded, so a later reader gets an error and no other call's bytes.
    this.#values = nothing;
    giveBackLent(values);
  }
}

const nothing: Encoded = windowOf(new Uint8Array(0), 0, 0);

/** Shared by all calls without dependencies. */
const none: readonly ObjectEntry[] = [];

/** @throws NotEncodableError */
export function encodeArguments(codec: Codec, args: readonly unknown[]): CallArguments {
  let values: readonly unknown[] = args;
  let dependencies: readonly ObjectEntry[] = none;
  let hasObjects = false;
  for (let index = 0; index < args.length; index++) {
    const value = args[index];
    if (value instanceof ObjectRef) {
      [values, dependencies] = withSlots(args);
      break;
    }
    hasObjects ||= typeof value === "object" && value !== null;
  }
  if (!hasObjects && dependencies === none) {
    const small = codec.packSmallList(values);
    if (small !== undefined) return new CallArguments(small);
    return new AnyArguments(codec.encodeOtherList(values, "args"), dependencies, undefined);
  }
  const slots = new SignalSlots(dependencies.length);
  const encoded = codec.encodeList(values, "args", slots);
  const signals = slots.signals === undefined ? undefined : new CallSignals(slots.signals, codec);
  return new AnyArguments(encoded, dependencies, signals);
}

function withSlots(args: readonly unknown[]): [readonly unknown[], readonly ObjectEntry[]] {
  const dependencies: ObjectEntry[] = [];
  const values = args.map((value) =>
    value instanceof ObjectRef ? slot(dependencies.push(liveEntryOf(value)) - 1) : value,
  );
  return [values, dependencies];
}
