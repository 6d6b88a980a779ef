/**
 * The runtime's self: it owns refs, submits calls and tasks, keeps sessions, answers fetches. The
 * driver and every host have one; this file puts its parts together.
 *
 * What a call does when it arrives is given in (`onCall`); the Directory knows where actors are.
 */
import type { TaskEvents } from "../telemetry/task-events.ts";
import type { ErrorClasses } from "../protocol/failure.ts";
import type { ActorInfo, Directory } from "../rpc/directory.ts";
import type { CallMessage } from "../protocol/message.ts";
import type { Session } from "../rpc/session/session.ts";
import type { DeathCause } from "../shared/errors.ts";
import { warn } from "../shared/text/warning.ts";
import { runtimeEnded } from "../store/object-entry.ts";
import type { ObjectMemoryParts } from "../store/object-memory.ts";
import { Store } from "../store/store.ts";
import { Calls } from "./calls/calls.ts";
import { Starts } from "./calls/actor-creations.ts";
import { Handles } from "./handles.ts";
import { ObjectExchange } from "./objects/object-exchange.ts";
import { Objects } from "./objects/objects.ts";
import { Pulls } from "./objects/pulls.ts";
import { Sessions } from "./objects/sessions.ts";
import { keptShapes } from "./kept-shapes.ts";
import { References } from "./references.ts";
import { SessionLife } from "./session-life.ts";
import { Values } from "./values.ts";
import { describeStuck } from "./waits/stuck-reason.ts";
import { StuckWatch, type Wait } from "./waits/stuck-watch.ts";
import type { Waiting } from "./waits/waiting-tasks.ts";

export interface CallerOptions {
  readonly id: string;
  readonly jobId: string;
  /** The node that it runs on. */
  readonly nodeId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly directory: Directory;
  readonly errorClasses: ErrorClasses;
  readonly waiting: Waiting;
  /** A `get` or `wait` that waits for longer says why; 0: never. */
  readonly stuckWarningMs: number;
  /** Where it notes what happens to calls, if it does. */
  readonly events: TaskEvents | undefined;
  readonly objectStore: Pick<ObjectMemoryParts, "budget" | "files" | "immutability">;
  /** Big results of calls stay here: this runtime shares no memory with their owners. */
  readonly keepsResults?: boolean;
  readonly onCall: (call: CallMessage, session: Session) => void;
  /** Calls of that target that may run together here; undefined when none waits here. */
  readonly concurrencyOf?: (target: string) => number | undefined;
}

export class Caller {
  /** Kept for the code that V8 has compiled. */
  static readonly shapes: readonly object[] = keptShapes;
  readonly id: string;
  readonly jobId: string;
  readonly nodeId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly directory: Directory;
  readonly waiting: Waiting;
  readonly stuck: StuckWatch;
  readonly events: TaskEvents | undefined;
  readonly references: References;
  readonly values: Values;
  readonly objects: Objects;
  readonly handles: Handles;
  readonly sessions: Sessions;
  readonly calls: Calls;
  readonly starts: Starts;
  readonly life: SessionLife = new SessionLife();

  constructor(options: CallerOptions) {
    const { id, directory, waiting, events } = options;
    this.id = id;
    this.jobId = options.jobId;
    this.nodeId = options.nodeId;
    this.nodeLabels = options.nodeLabels;
    this.directory = directory;
    this.waiting = waiting;
    this.events = events;
    this.stuck = new StuckWatch(options.stuckWarningMs, (waits) => void this.#warn(waits));
    waiting.watchedBy(this.stuck, events);
    const exchange = new ObjectExchange({
      id,
      sessions: () => this.sessions,
      values: () => this.values,
      objects: () => this.objects,
    });
    const store = new Store(id, exchange);
    this.handles = new Handles({
      store,
      caller: () => this.calls,
      onReleased: (actorId) => {
        if (!this.life.hasEnded) directory.outOfScope(actorId);
      },
      onUnused: (actorId) => this.calls.forget(actorId),
    });
    this.references = new References(store, this.handles);
    this.values = new Values(this.references, options.errorClasses);
    this.objects = this.#newObjects(options, store, exchange);
    this.sessions = this.#newSessions(options, exchange);
    this.calls = new Calls({
      link: {
        directory,
        events,
        values: this.values,
        objects: this.objects,
        session: (hostId) => this.sessions.with(hostId),
      },
      sessions: this.sessions,
      waiting,
      life: this.life,
    });
    this.starts = new Starts({ directory, values: this.values, objects: this.objects });
  }

  #newObjects(options: CallerOptions, store: Store, exchange: ObjectExchange): Objects {
    return new Objects({
      store,
      exchange,
      values: this.values,
      waiting: this.waiting,
      life: this.life,
      memory: options.objectStore,
      keepsResults: options.keepsResults ?? false,
    });
  }

  #newSessions(options: CallerOptions, exchange: ObjectExchange): Sessions {
    return new Sessions({
      id: this.id,
      directory: this.directory,
      exchange,
      values: this.values,
      objects: this.objects,
      references: this.references,
      pulls: new Pulls(options.objectStore.budget.limitBytes / 4),
      onCall: options.onCall,
      concurrencyOf: options.concurrencyOf ?? (() => undefined),
    });
  }

  /**
   * The first handle of an actor that this runtime creates and owns; its calls wait until
   * `registered` settles.
   *
   * @param isCounted the directory is told when nobody holds a handle of the actor
   */
  createHandle(
    info: ActorInfo,
    registered?: Promise<void>,
    isCounted: boolean = !info.isDetached,
  ): object {
    this.calls.addActor(info, registered);
    return isCounted ? this.handles.own(info) : this.handles.weak(info);
  }

  /** Ends every session: what waits is told first, and later calls throw. Idempotent. */
  end(reason: DeathCause): void {
    if (this.life.hasEnded) return;
    this.life.end(reason);
    runtimeEnded();
    this.waiting.end(reason.message);
    this.stuck.close();
    this.handles.close();
    this.sessions.close(reason);
  }

  async #warn(waits: readonly Wait[]): Promise<void> {
    try {
      warn(await describeStuck(this, waits));
    } catch (error) {
      // The directory is gone, and everybody who waits with it.
      if (!this.life.hasEnded) warn(String(error));
    }
  }
}
