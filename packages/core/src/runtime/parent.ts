/**
 * A host as the parent of what its code starts: actors and tasks inherit its settings, and get no
 * permission that it lacks. The driver says so, whatever the host says.
 */
import type { ForeignAnswer, ForeignRequest } from "../rpc/engine-actors.ts";
import type { ActorSpec, RuntimeEnv, WorkerRequest } from "../rpc/directory.ts";
import type { DeathCause } from "../shared/errors.ts";
import { kindOfInherited, widening } from "./launch/inherited-env.ts";

export class Parent {
  /** Known before any of its code runs; undefined for those that have only the session's. */
  settings: RuntimeEnv | undefined;

  /** Returns an actor of its code, with what it inherits. */
  ofActor(spec: ActorSpec): ActorSpec {
    return { ...spec, inherited: this.settings };
  }

  /** Returns a task of its code, with what it inherits. */
  ofTask(request: WorkerRequest): WorkerRequest {
    const inherited = this.settings;
    if (inherited === undefined) return { ...request, inherited };
    // Workers with other inherited settings are of another kind.
    const kind = JSON.stringify([request.kind, kindOfInherited(inherited, request.moduleUrl)]);
    return { ...request, inherited, kind };
  }

  /** Returns why those settings are refused to what its code starts, if they are. */
  refuses(own: RuntimeEnv | undefined): DeathCause | undefined {
    const message = widening(own, this.settings);
    return message === undefined ? undefined : { kind: "runtime-env-failed", message };
  }

  /** Actors of the engine's cluster run beside the session, and nothing limits what they may do. */
  refusesForeign({ kind }: ForeignRequest): ForeignAnswer | undefined {
    if (this.settings?.permissions === undefined) return undefined;
    if (kind !== "create" && kind !== "make") return undefined;
    const message =
      "the code that starts it has limited permissions, which an actor of the Ray cluster cannot have";
    return { failure: { kind: "confined", type: "", message, traceback: "" } };
  }
}
