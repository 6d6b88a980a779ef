/**
 * Actors of the engine's own cluster, as requests of a runtime and their answers: those in another
 * language, and classes of the driver's code that live on after the session.
 * Values are in Python's form (protocol/values/python-values.ts).
 */

import type { RemoteKey } from "./remote-key.ts";

/** Values on their way: JSON, and the memory of arrays and bytes in it. */
export interface ForeignValues {
  readonly value: unknown;
  readonly buffers: readonly Uint8Array[];
}

/** Options of the engine for a new actor, by the engine's names. */
export type ForeignOptions = Readonly<Record<string, unknown>>;

/** Who makes a request names the actor; it may be called before it lives. */
export type ForeignRequest =
  | {
      readonly kind: "create";
      readonly actorId: string;
      /** `module:Class`. */
      readonly path: string;
      readonly options: ForeignOptions;
      /** A folder at the driver whose files are there when the module is imported. */
      readonly workingDir: string | undefined;
      /** Positional arguments, and those by name. */
      readonly args: ForeignValues;
    }
  | {
      readonly kind: "make";
      readonly actorId: string;
      /** A class of the driver's code, which goes along. */
      readonly key: RemoteKey;
      readonly methods: readonly string[];
      /** The generators among its methods. */
      readonly streams: readonly string[];
      readonly options: ForeignOptions;
      readonly args: ForeignValues;
    }
  | {
      readonly kind: "find";
      readonly actorId: string;
      readonly name: string;
      readonly namespace: string | undefined;
    }
  | {
      readonly kind: "call";
      /** Who calls names the call. */
      readonly callId: string;
      readonly actorId: string;
      readonly method: string;
      readonly args: ForeignValues;
    }
  /** Ends a call early, as the engine does: one that has its answer is left as it is. */
  | { readonly kind: "cancel"; readonly callId: string; readonly recursive: boolean }
  /** Names of living actors, as `{ name, namespace }`: in the session's namespace, or in all. */
  | { readonly kind: "list"; readonly allNamespaces: boolean }
  | { readonly kind: "kill"; readonly actorId: string; readonly noRestart: boolean };

/** Why a request failed. */
export interface ForeignFailure {
  /**
   * `thrown`: its code threw. `died`, `unavailable`: the actor. `missing`: no actor has that name.
   * `taken`: another one has it. `method`: it has no such method. `cancelled`: the call, by
   * somebody in the cluster. `confined`: the code that makes it has permissions, which it cannot
   * have. `refused`: anything else.
   */
  readonly kind:
    | "thrown"
    | "died"
    | "unavailable"
    | "missing"
    | "taken"
    | "method"
    | "cancelled"
    | "confined"
    | "refused";
  /** The class of the error there. */
  readonly type: string;
  readonly message: string;
  readonly traceback: string;
}

/** Without both, the session has no cluster with such actors. */
export interface ForeignAnswer {
  readonly ok?: ForeignValues;
  readonly failure?: ForeignFailure;
}

export interface ForeignDirectory {
  /** Rejects with RaySystemError when the engine is lost. */
  foreign(request: ForeignRequest): Promise<ForeignAnswer>;
}
