/** Calls and tasks of one runtime, from `.remote()` until they are answered. */
import { tracingSlot } from "../../telemetry/tracing.ts";
import { clockMs } from "../../shared/clock.ts";
import { PendingCallsLimitExceeded } from "../../shared/errors.ts";
import type { ActorInfo, Directory } from "../../rpc/directory.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { ObjectRef } from "../../store/object-ref.ts";
import type { HandleCaller } from "../handle.ts";
import type { Sessions } from "../objects/sessions.ts";
import type { SessionLife } from "../session-life.ts";
import { ObjectRefGenerator, StreamState } from "../stream.ts";
import type { TaskScope } from "../waits/task-scope.ts";
import type { Waiting } from "../waits/waiting-tasks.ts";
import { ActorClient } from "./actor/actor-client.ts";
import type { Hold } from "./actor/unanswered-calls.ts";
import { encodeArguments } from "./call-arguments.ts";
import { Call, type CallOwner, type CallPlan, type Returns } from "./call.ts";
import type { ClientLink } from "./client-link.ts";
import { ManyReturns } from "./many-returns.ts";
import { noteSubmit } from "./note-events.ts";
import { TaskClient } from "./task/task-client.ts";
import { tracedArguments } from "./traced-call.ts";

export interface CallsParts {
  readonly link: ClientLink;
  readonly sessions: Sessions;
  readonly waiting: Waiting;
  readonly life: SessionLife;
}

export class Calls implements HandleCaller {
  readonly directory: Directory;
  readonly waiting: Waiting;
  readonly #link: ClientLink;
  readonly #sessions: Sessions;
  readonly #life: SessionLife;
  readonly #actors: Map<string, ActorClient> = new Map();
  readonly #tasks: TaskClient;

  constructor({ link, sessions, waiting, life }: CallsParts) {
    this.directory = link.directory;
    this.waiting = waiting;
    this.#link = link;
    this.#sessions = sessions;
    this.#life = life;
    this.#tasks = new TaskClient(link);
  }

  checkAlive(): void {
    this.#life.check();
  }

  /** @throws PendingCallsLimitExceeded, NotEncodableError, SessionEndedError */
  callActor(info: ActorInfo, plan: CallPlan, args: readonly unknown[], hold: Hold): unknown {
    this.#life.check();
    const client = this.#client(info);
    if (info.maxPendingCalls >= 0 && client.unanswered.count >= info.maxPendingCalls) {
      throw new PendingCallsLimitExceeded(info, info.maxPendingCalls);
    }
    const call = this.#submit(client, plan, args);
    client.unanswered.keep(call, hold);
    return returnedOf(call);
  }

  /** @throws NotEncodableError, SessionEndedError */
  callTask(plan: CallPlan, args: readonly unknown[]): unknown {
    this.#life.check();
    return returnedOf(this.#submit(this.#tasks, plan, args));
  }

  #submit(client: CallOwner, plan: CallPlan, args: readonly unknown[]): Call {
    const { events, values, objects } = this.#link;
    const startMs = events === undefined ? 0 : clockMs();
    const encoded = encodeArguments(values.codec, args);
    const { shape, label, method } = plan.route;
    const entry = objects.store.create(shape?.name ?? label ?? method);
    const tracing = tracingSlot.current;
    const { codec } = values;
    const traced =
      tracing === undefined ? encoded : tracedArguments({ tracing, codec, args: encoded, entry });
    const call = new Call(client, plan, traced, entry);
    if (shape !== undefined) call.returns = this.#returnsOf(entry, plan);
    client.submit(call);
    if (events !== undefined) noteSubmit(events, call, startMs);
    return call;
  }

  #returnsOf(entry: ObjectEntry, { route, isDetached = false }: CallPlan): Returns | undefined {
    const { returns = 1, ahead } = route.shape ?? {};
    if (returns === 1) return undefined;
    if (returns === "streaming") {
      const isLimited = ahead !== undefined;
      return new StreamState(entry, this.#link, this.waiting, { isLimited, isDetached });
    }
    const { store } = this.#link.objects;
    const more = Array.from({ length: Math.max(0, returns - 1) }, () => store.create(entry.label));
    return new ManyReturns(returns === 0 ? [] : [entry, ...more], this.#link);
  }

  /**
   * Cancels the call that makes an object, here or at its owner.
   *
   * @throws InvalidOptionError for force on a call to an actor
   */
  cancel(entry: ObjectEntry, recursive: boolean, force: boolean): void {
    if (entry.owner === this.#link.objects.store.id) {
      return entry.producer?.cancel?.(recursive, force);
    }
    if (entry.outcome !== undefined) return;
    void this.#sessions.with(entry.owner).then(
      (session) => session.send({ kind: "cancel-object", objectId: entry.id, recursive, force }),
      // An owner that is gone has nothing to cancel.
      () => undefined,
    );
  }

  /** Cancels what a task has called and has not been answered, and what its code does not end. */
  cancelChildren(parent: TaskScope): void {
    const children = [...this.unanswered()].filter(
      (call) => call.parent === parent && !call.isApart,
    );
    for (const call of children) call.cancel(true, false);
  }

  /** Calls and tasks that have no answer yet. */
  *unanswered(): Iterable<Call> {
    for (const session of this.#sessions.open) {
      for (const call of session.requests.all()) {
        if (call instanceof Call && !call.isSettled) yield call;
      }
    }
    for (const client of this.#actors.values()) {
      for (const call of client.calls()) if (!call.isSettled) yield call;
    }
    for (const call of this.#tasks.calls()) if (!call.isSettled) yield call;
  }

  /** How many calls, tasks and fetches have no answer, sent or not. */
  get outstanding(): number {
    let count = this.#tasks.queued;
    for (const session of this.#sessions.open) count += session.requests.size;
    for (const client of this.#actors.values()) for (const _ of client.calls()) count += 1;
    return count;
  }

  /** Resolves when no call waits for its actor's place any more: each was sent, or cannot be. */
  async sent(): Promise<void> {
    for (;;) {
      const searches = Array.from(
        this.#actors.values(),
        ({ queues }) => queues.placed ?? [],
      ).flat();
      if (searches.length === 0) return;
      await Promise.all(searches);
    }
  }

  /** How many actors are known here: for tests of leaks. */
  get actorCount(): number {
    return this.#actors.size;
  }

  /** Calls of an actor that is being created wait until `registered` settles. */
  addActor(info: ActorInfo, registered?: Promise<void>): void {
    this.#actors.set(info.actorId, new ActorClient(info, this.#link, registered));
  }

  /** No handle of an actor is here; a handle that arrives later makes a new client. */
  forget(actorId: string): void {
    const client = this.#actors.get(actorId);
    if (client === undefined || client.unanswered.count > 0) return;
    this.#actors.delete(actorId);
    client.retire();
  }

  #client(info: ActorInfo): ActorClient {
    let client = this.#actors.get(info.actorId);
    if (client === undefined) {
      client = new ActorClient(info, this.#link);
      this.#actors.set(info.actorId, client);
    }
    return client;
  }
}

/** Returns a ref, nothing, several refs, or a stream of them, by the shape of the call. */
function returnedOf(call: Call): unknown {
  const { returns } = call;
  if (returns === undefined) return new ObjectRef(call.entry);
  if (returns instanceof StreamState) return new ObjectRefGenerator(returns);
  if (!(returns instanceof ManyReturns) || returns.entries.length === 0) return undefined;
  for (const entry of returns.entries) entry.producer = call;
  return returns.entries.map((entry) => new ObjectRef(entry));
}
