/**
 * What every runtime is to the others: it owns refs, submits calls and tasks, keeps sessions, answers fetches.
 *
 * The driver and every host have one. What a call does when it arrives is given in (`onCall`); where actors are is asked of the Directory.
 */
import { Codec, compact, type Encoded, isBig, sizeOf } from "../protocol/codec.ts";
import { type ErrorClasses, type FailureData, isOfClass } from "../protocol/failure.ts";
import { slot } from "../protocol/values/special.ts";
import { type DeathCause, PendingCallsLimitExceeded, SessionEndedError } from "../shared/errors.ts";
import { cameBy } from "../protocol/shared-memory.ts";
import {
  type Away,
  type ObjectEntry,
  type Outcome,
  type Producer,
  runtimeEnded,
} from "../store/object-entry.ts";
import { ObjectMemory, type ObjectMemoryParts } from "../store/object-memory.ts";
import { entryOf, liveEntryOf, ObjectRef } from "../store/object-ref.ts";
import { Store } from "../store/store.ts";
import type { Channel } from "../transport/channel.ts";
import type { ActorInfo, Directory, StartArguments, WorkerRequest } from "../rpc/directory.ts";
import { ActorClient } from "./calls/actor-client.ts";
import {
  type FunctionData,
  functionDataOf,
  isFunctionRef,
  makeFunctionRef,
} from "./calls/function-ref.ts";
import { Call, type CallPlan, type Returns } from "./calls/call.ts";
import { CallSignals, SignalSlots } from "./calls/call-signals.ts";
import { currentTask, type TaskScope } from "./waits/task-scope.ts";
import { type HandleCaller, insideOf, isHandle, lifeOf, makeHandle } from "./handle.ts";
import type { ClientLink } from "./calls/client-link.ts";
import { HandleCounts } from "./objects/handle-counts.ts";
import { ManyReturns } from "./calls/many-returns.ts";
import { ObjectRefGenerator, StreamState } from "./stream.ts";
import { ObjectExchange } from "./objects/object-exchange.ts";
import { Pulls } from "./objects/pulls.ts";
import type { CallMessage } from "../rpc/incoming-calls.ts";
import type { Session } from "../rpc/session.ts";
import { Sessions } from "./objects/sessions.ts";
import { describeStuck } from "./waits/explain.ts";
import { StuckWatch, type Wait } from "./waits/stuck.ts";
import type { TaskEvents } from "../inside/task-events.ts";
import { clockMs } from "../shared/clock.ts";
import { warn } from "../shared/text/warning.ts";
import { noteSubmit } from "./calls/note-events.ts";
import { TaskClient } from "./calls/task-client.ts";
import type { Waiting } from "./waits/waiting.ts";
import { Lineage, type LineageLink } from "./objects/lineage.ts";
import {
  inlineBytes,
  Located,
  type LocatedLink,
  type StandIn,
  standInOf,
} from "./objects/located.ts";

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
  /** Big results of calls stay here, and their owners get what stands for them: this runtime shares no memory with them. */
  readonly keepsResults?: boolean;
  readonly onCall: (call: CallMessage, session: Session) => void;
  /** Calls of that target that may run together here; undefined when none waits here. */
  readonly concurrencyOf?: (target: string) => number | undefined;
}

/** What `.remote()` gives back: a ref, nothing, several refs, or a stream of them, by the plan's shape. */
export type Returned = ObjectRef | undefined | readonly ObjectRef[] | ObjectRefGenerator;

type ReferenceData =
  | readonly ["object", string, number, string]
  | readonly ["actor", ActorInfo, string?, number?]
  | readonly ["function", FunctionData];

export class Caller implements HandleCaller, ClientLink, LocatedLink, LineageLink {
  readonly id: string;
  readonly jobId: string;
  readonly nodeId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly directory: Directory;
  readonly codec: Codec;
  readonly store: Store;
  readonly memory: ObjectMemory;
  readonly #lineage: Lineage;
  readonly #keepsResults: boolean;
  /** Results that stayed here. */
  readonly #placed: WeakSet<ObjectEntry> = new WeakSet();
  readonly waiting: Waiting;
  readonly stuck: StuckWatch;
  readonly events: TaskEvents | undefined;
  readonly #sessions: Sessions;
  readonly #exchange: ObjectExchange;
  readonly #actors: Map<string, ActorClient> = new Map();
  readonly #tasks: TaskClient;
  readonly #handleCounts: HandleCounts = new HandleCounts({
    borrowedCount: () => this.store.borrowedCount,
    onReleased: (actorId) => {
      if (this.#ended === undefined) this.directory.outOfScope(actorId);
    },
    onUnused: (actorId) => this.#forget(actorId),
  });
  /** Actors that wait for arguments of their constructors. */
  readonly #starting: Map<string, readonly ObjectEntry[]> = new Map();
  #signals: CallSignals | undefined = undefined;
  #ended: DeathCause | undefined = undefined;

  constructor(options: CallerOptions) {
    this.id = options.id;
    this.jobId = options.jobId;
    this.nodeId = options.nodeId;
    this.nodeLabels = options.nodeLabels;
    this.directory = options.directory;
    this.waiting = options.waiting;
    this.stuck = new StuckWatch(options.stuckWarningMs, (waits) => void this.#warn(waits));
    this.events = options.events;
    this.waiting.watchedBy(this.stuck, options.events);
    this.#exchange = new ObjectExchange(this);
    this.store = new Store(this.id, this.#exchange);
    this.#sessions = new Sessions({
      id: this.id,
      directory: this.directory,
      store: this.store,
      exchange: this.#exchange,
      pulls: new Pulls(options.objectStore.budget.limitBytes / 4),
      onCall: options.onCall,
      concurrencyOf: options.concurrencyOf ?? (() => undefined),
      settle: (entry, value) => this.settle(entry, value),
      exportReferences: (references, peerId) => this.exportReferences(references, peerId),
      decline: (value) => this.decline(value),
      describe: (error) => this.describe(error),
    });
    this.codec = new Codec({
      isReference: (value) => value instanceof ObjectRef || isHandle(value) || isFunctionRef(value),
      write: (value) => this.#writeReference(value),
      read: (data) => this.#readReference(data as ReferenceData),
      decline: (data) => this.#declineReference(data as ReferenceData),
      findOrigin: options.errorClasses.findOrigin,
      findClass: options.errorClasses.findClass,
    });
    this.memory = new ObjectMemory({
      ...options.objectStore,
      describe: (error) => this.describe(error),
    });
    this.#tasks = new TaskClient(this);
    this.#lineage = new Lineage(this);
    this.#keepsResults = options.keepsResults ?? false;
  }

  /** @throws NotEncodableError, SessionEndedError */
  put(value: unknown): ObjectRef {
    this.checkAlive("what is put");
    const entry = this.store.create("put");
    entry.resolve(compact(this.codec.encode(value, "value")));
    this.memory.keep(entry, true);
    return new ObjectRef(entry);
  }

  /** A ref that settles as `work` does. */
  refOf(label: string, work: Promise<unknown>): ObjectRef {
    const entry = this.store.create(label);
    work
      .then((value) => this.settle(entry, compact(this.codec.encode(value, label))))
      .catch((error: unknown) => entry.reject(this.describe(error as Error)));
    return new ObjectRef(entry);
  }

  /** @throws PendingCallsLimitExceeded, NotEncodableError, SessionEndedError */
  callActor(info: ActorInfo, plan: CallPlan, args: readonly unknown[], hold: unknown): Returned {
    this.checkAlive();
    const client = this.#client(info);
    if (info.maxPendingCalls >= 0 && client.outstanding >= info.maxPendingCalls) {
      throw new PendingCallsLimitExceeded(info, info.maxPendingCalls);
    }
    const startMs = this.events === undefined ? 0 : clockMs();
    const dependencies = emptyFor(args);
    const encoded = this.#encodeArguments(args, dependencies);
    const signals = this.#takeSignals();
    const { shape } = plan.route;
    const entry = this.store.create(plan.route.label ?? plan.route.method);
    const returns = shape === undefined ? undefined : this.#returnsOf(entry, plan);
    const queue = client.queueOf(shape?.group);
    const parent = currentTask();
    const call = new Call(client, queue, plan, encoded, dependencies, entry, returns, parent, hold);
    call.signals = signals;
    client.submit(call);
    if (this.events !== undefined) noteSubmit(this.events, call, startMs);
    return returns === undefined ? new ObjectRef(entry) : returnedOf(call, returns);
  }

  /** @throws NotEncodableError, SessionEndedError */
  callTask(plan: CallPlan, worker: WorkerRequest, args: readonly unknown[]): Returned {
    this.checkAlive();
    const startMs = this.events === undefined ? 0 : clockMs();
    const dependencies: ObjectEntry[] = [];
    const encoded = this.#encodeArguments(args, dependencies);
    const signals = this.#takeSignals();
    const { route } = plan;
    const entry = this.store.create(route.shape?.name ?? route.label ?? route.method);
    const returns = this.#returnsOf(entry, plan);
    const queue = this.#tasks.queueOf(worker);
    const parent = currentTask();
    const call = new Call(
      this.#tasks,
      queue,
      plan,
      encoded,
      dependencies,
      entry,
      returns,
      parent,
      undefined,
    );
    call.signals = signals;
    this.#tasks.submit(call);
    if (this.events !== undefined) noteSubmit(this.events, call, startMs);
    return returns === undefined ? new ObjectRef(entry) : returnedOf(call, returns);
  }

  /** Cancels the call that makes an object, here or at its owner. @throws InvalidOptionError for force on a call to an actor */
  cancel(entry: ObjectEntry, recursive: boolean, force: boolean): void {
    if (entry.owner === this.id) return entry.producer?.cancel(recursive, force);
    if (entry.outcome !== undefined) return;
    void this.session(entry.owner).then(
      (session) => session?.send({ kind: "cancel-object", objectId: entry.id, recursive, force }),
      // An owner that is gone has nothing to cancel.
      () => undefined,
    );
  }

  /** Cancels what a task has called and has not been answered. */
  cancelChildren(parent: TaskScope): void {
    const children = [...this.unanswered()].filter((call) => call.parent === parent);
    for (const call of children) call.cancel(true, false);
  }

  /** Calls and tasks that have no answer yet. */
  *unanswered(): Iterable<Call> {
    for (const session of this.#sessions.open) {
      for (const call of session.requests.all())
        if (call instanceof Call && !call.isSettled) yield call;
    }
    for (const client of this.#actors.values()) {
      for (const call of client.calls()) if (!call.isSettled) yield call;
    }
    for (const call of this.#tasks.calls()) if (!call.isSettled) yield call;
  }

  createEntry(label: string): ObjectEntry {
    return this.store.create(label);
  }

  readCount(value: Encoded): number {
    return this.codec.decode(value) as number;
  }

  #returnsOf(entry: ObjectEntry, { route, isDetached = false }: CallPlan): Returns | undefined {
    const { returns = 1, ahead } = route.shape ?? {};
    if (returns === 1) return undefined;
    if (returns === "streaming") {
      const isLimited = ahead !== undefined;
      return new StreamState(entry, this, this.waiting, { isLimited, isDetached });
    }
    const more = Array.from({ length: Math.max(0, returns - 1) }, () =>
      this.store.create(entry.label),
    );
    return new ManyReturns(returns === 0 ? [] : [entry, ...more], this);
  }

  /** Encodes constructor arguments now; they are handed to `start` when the refs among them are ready. */
  prepareStart(
    actorId: string,
    args: readonly unknown[],
    start: (args: StartArguments, begun: () => void) => void,
    fail: (cause: DeathCause) => void,
  ): void {
    const entries: ObjectEntry[] = [];
    const values = this.#encodeArguments(args, entries);
    const signals = this.#takeSignals();
    let unresolved = entries.length;
    const settle = (): void => {
      if (this.bringingHere(entries, settle)) return;
      const dependencies: Encoded[] = [];
      for (const { outcome } of entries) {
        if (outcome?.ok === false) {
          const error = this.codec.reviveFailure(outcome.failure);
          return fail({
            kind: "init-failed",
            message: `a constructor argument failed: ${error.message}`,
            error,
          });
        }
        if (outcome?.value !== undefined) dependencies.push(outcome.value);
      }
      if (signals !== undefined) dependencies.push(...signals.states());
      start({ values, dependencies }, () => {
        if (signals !== undefined) this.#connect(actorId, signals);
      });
    };
    if (unresolved === 0) return settle();
    this.#starting.set(actorId, entries);
    for (const entry of entries) {
      entry.watch(() => {
        unresolved -= 1;
        if (unresolved > 0) return;
        this.#starting.delete(actorId);
        settle();
      });
    }
  }

  /** Signals of its constructor are an actor's as long as it lives. */
  #connect(actorId: string, signals: CallSignals): void {
    signals.listen((index, reason) => this.directory.abortSignal(actorId, index, reason));
    this.directory.actorEnded(actorId).then(
      () => signals.end(),
      // A directory that does not answer ends with this runtime.
      () => signals.end(),
    );
  }

  /** Arguments of the constructor of an actor that it is about to create. */
  missingFor(actorId: string): readonly ObjectEntry[] {
    return this.#starting.get(actorId) ?? [];
  }

  /**
   * The first handle of an actor that this runtime creates and owns; its calls wait until `registered` settles.
   *
   * @param isCounted the directory is to hear when nobody holds a handle of it
   */
  createHandle(
    info: ActorInfo,
    registered?: Promise<void>,
    isCounted: boolean = !info.isDetached,
  ): object {
    this.#actors.set(info.actorId, new ActorClient(info, this, registered));
    if (!isCounted) return this.weakHandle(info);
    const life = this.store.create(`actor ${info.className}`);
    this.#handleCounts.watch(life, info.actorId, true);
    return makeHandle(info, this, life);
  }

  /** One that does not keep its actor alive. */
  weakHandle(info: ActorInfo): object {
    const handle = makeHandle(info, this, undefined);
    this.#handleCounts.watchWeak(handle, info.actorId);
    return handle;
  }

  /** Of living and dead actors alike: who is given a handle of it again gets a new client. */
  #forget(actorId: string): void {
    const client = this.#actors.get(actorId);
    if (client === undefined || client.outstanding > 0) return;
    this.#actors.delete(actorId);
    client.retire();
  }

  /** A peer opened a channel to us, or the launcher made one. */
  addSession(peerId: string, channel: Channel): Session {
    return this.#sessions.add(peerId, channel);
  }

  session(hostId: string): Promise<Session> {
    return this.#sessions.with(hostId);
  }

  sessionForCounts(hostId: string): Promise<Session> {
    return this.#sessions.forCounts(hostId);
  }

  whenDead(hostId: string, watcher: (cause: DeathCause) => void): () => void {
    return this.#sessions.whenDead(hostId, watcher);
  }

  /** References leave inside a value, to that runtime. */
  exportReferences(references: readonly object[], peerId: string): void {
    for (const reference of references) {
      const entry = reference instanceof ObjectRef ? entryOf(reference) : lifeOf(reference);
      if (entry !== undefined) this.store.exportReference(entry, peerId);
    }
  }

  /** @param maker the call that made it, if one did: a big value may have to be made again */
  settle(entry: ObjectEntry, value: Encoded, maker?: Producer): void {
    try {
      this.codec.claim(value);
      const isLocated = value.isLocated === true;
      if ((isLocated || isBig(value)) && maker instanceof Call) this.#lineage.note(entry, maker);
      if (isLocated) this.#locate(entry, standInOf(this.codec.decode(value)));
      else entry.resolve(value);
      if (isBig(value) && entry.owner === this.id) this.memory.keep(entry, false);
    } catch (error) {
      // A value that cannot be read fails its own call, not the channel it came by.
      entry.reject(this.describe(error as Error));
    }
  }

  /** Takes over the refs inside. A value that cannot be read fails whoever decodes it. */
  claim(value: Encoded): void {
    try {
      this.codec.claim(value);
    } catch {
      // Nobody can tell what is inside.
    }
  }

  decline(value: Encoded): void {
    try {
      this.codec.decline(value);
    } catch {
      // Nobody can tell what is inside.
    }
  }

  #locate(entry: ObjectEntry, standIn: StandIn): void {
    // What it keeps on the other host goes when something small here is collected.
    cameBy(standIn.byteLength);
    entry.resolveAway(new Located(standIn, this));
  }

  /** What is answered in place of a big result, which stays here until somebody wants it. */
  placed(value: Encoded, label: string): Encoded {
    if (!this.#keepsResults || sizeOf(value) <= inlineBytes) return value;
    const entry = this.store.create(label);
    this.settle(entry, compact(value));
    this.#placed.add(entry);
    return this.encodeStandIn({ kept: new ObjectRef(entry), byteLength: sizeOf(value) });
  }

  /** Gives the results that stayed here to those who hold them: this runtime is about to end. What is on disk is lost. */
  handOver(): void {
    const sessions = new Map([...this.#sessions.open].map((session) => [session.peerId, session]));
    for (const { entry, holders } of this.store.held()) {
      const value = entry.outcome?.value;
      if (value === undefined || !this.#placed.delete(entry)) continue;
      for (const holder of holders)
        sessions.get(holder)?.send({ kind: "value", objectId: entry.id, value });
    }
  }

  /** The same, with what is on disk. */
  async handOverAll(): Promise<void> {
    const entries = [...this.store.held()].map(({ entry }) => entry);
    const placed = entries.filter((entry) => this.#placed.has(entry));
    await this.bringHere(placed, () => this.handOver());
  }

  encodeStandIn(standIn: StandIn): Encoded {
    return { ...this.codec.encode(standIn, "what stands for a value"), isLocated: true };
  }

  fetchWhole(object: ObjectEntry): Promise<Outcome> {
    return this.#exchange.fetchWhole(object);
  }

  remake(entry: ObjectEntry, loss: Error): Promise<void> {
    return this.#lineage.remake(entry, loss);
  }

  /** The value of an entry that was away is in memory from now on. */
  arrived(entry: ObjectEntry, value: Encoded): void {
    try {
      this.codec.claim(value);
    } catch (error) {
      return entry.lost(this.describe(error as Error));
    }
    entry.returned(value);
    if (entry.owner === this.id) this.memory.keep(entry, false);
  }

  async adopt(entry: ObjectEntry, made: ObjectEntry): Promise<void> {
    const { outcome } = made;
    if (outcome?.ok === false) return entry.lost(outcome.failure);
    if (outcome?.away instanceof Located) {
      const away = new Located(outcome.away, this);
      entry.moved(away);
      return away.bring(entry);
    }
    await this.bringHere([made], () => {
      if (made.outcome?.ok === false) entry.lost(made.outcome.failure);
      else if (made.outcome?.value !== undefined) this.arrived(entry, made.outcome.value);
    });
  }

  revive(failure: FailureData): Error {
    return this.codec.reviveFailure(failure);
  }

  /**
   * Whether values of these entries are away and nothing may be passed on in their place: then they are brought, and `resume` is called when all
   * are there or have failed.
   */
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean {
    return this.#bringing(entries, (entry, away) => away.standIn?.(entry) === undefined, resume);
  }

  /** The same for who looks at the values here. */
  bringingHere(entries: readonly ObjectEntry[], resume: () => void): boolean {
    return this.#bringing(entries, () => true, resume);
  }

  /** Brings what is away; `look` is called when all are there or have failed. */
  bringHere(entries: readonly ObjectEntry[], look: () => void): Promise<void> {
    return this.memory.bring(entries, look);
  }

  #bringing(
    entries: readonly ObjectEntry[],
    isWanted: (entry: ObjectEntry, away: Away) => boolean,
    resume: () => void,
  ): boolean {
    let wanted: ObjectEntry[] | undefined;
    for (const entry of entries) {
      const { outcome } = entry;
      if (outcome?.ok !== true) continue;
      if (outcome.value !== undefined) {
        if (isBig(outcome.value)) this.memory.used(entry);
      } else if (isWanted(entry, outcome.away)) {
        (wanted ??= []).push(entry);
      }
    }
    if (wanted === undefined) return false;
    void this.memory.bring(wanted, resume);
    return true;
  }

  readFailure(error: Encoded): FailureData {
    try {
      return this.codec.decodeFailure(error);
    } catch (unreadable) {
      return this.describe(unreadable as Error);
    }
  }

  describe(error: Error): FailureData {
    return this.codec.decodeFailure(this.codec.encodeFailure(error));
  }

  retryable(failure: FailureData, policy: boolean | readonly string[]): boolean {
    return typeof policy === "boolean" ? policy : policy.some((one) => isOfClass(failure, one));
  }

  /** Actors of which something is known here: for tests of leaks. */
  get actorCount(): number {
    return this.#actors.size;
  }

  /** Calls and tasks without an answer, sent or not. */
  get outstandingCalls(): number {
    let count = this.#tasks.queued;
    for (const session of this.#sessions.open) count += session.requests.size;
    for (const client of this.#actors.values()) for (const _ of client.calls()) count += 1;
    return count;
  }

  /** Whether it stands for the handles of an actor, and has no value. */
  isLife(entry: ObjectEntry): boolean {
    return this.#handleCounts.has(entry);
  }

  /** Living ones. */
  get sessions(): Iterable<Session> {
    return this.#sessions.open;
  }

  /** Sends what is gathered, on every session: the thread is about to end. */
  flush(): void {
    this.#sessions.flush();
  }

  /** Ends every session with `reason`: who waits hears of it first, and later calls throw. Idempotent. */
  end(reason: DeathCause): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    runtimeEnded();
    this.waiting.end(reason.message);
    this.stuck.close();
    this.#handleCounts.close();
    this.#sessions.close(reason);
  }

  async #warn(waits: readonly Wait[]): Promise<void> {
    try {
      warn(await describeStuck(this, waits));
    } catch (error) {
      // The directory is gone, and with it whoever waits.
      if (this.#ended === undefined) warn(String(error));
    }
  }

  /** @throws SessionEndedError when its session has ended */
  checkAlive(what: string = "this handle"): void {
    if (this.#ended === undefined) return;
    throw new SessionEndedError(
      `${what} belongs to a session that has ended (${this.#ended.message})`,
    );
  }

  #client(info: ActorInfo): ActorClient {
    let client = this.#actors.get(info.actorId);
    if (client === undefined) {
      client = new ActorClient(info, this);
      this.#actors.set(info.actorId, client);
    }
    return client;
  }

  #encodeArguments(args: readonly unknown[], dependencies: ObjectEntry[]): Encoded {
    let values = args;
    let hasObjects = false;
    for (let index = 0; index < args.length; index++) {
      const value = args[index];
      if (!(value instanceof ObjectRef)) {
        hasObjects ||= typeof value === "object" && value !== null;
        continue;
      }
      if (values === args) values = [...args];
      (values as unknown[])[index] = slot(dependencies.push(liveEntryOf(value)) - 1);
    }
    if (!hasObjects) return this.codec.encodeList(values, "args");
    const slots = new SignalSlots(dependencies.length);
    const encoded = this.codec.encodeList(values, "args", slots);
    if (slots.signals !== undefined) this.#signals = new CallSignals(slots.signals, this.codec);
    return encoded;
  }

  /** Those among the arguments that were encoded last. */
  #takeSignals(): CallSignals | undefined {
    const signals = this.#signals;
    if (signals !== undefined) this.#signals = undefined;
    return signals;
  }

  #writeReference(value: object): ReferenceData {
    if (value instanceof ObjectRef) {
      const entry = liveEntryOf(value);
      return ["object", entry.owner, entry.sequence, entry.label];
    }
    const task = functionDataOf(value);
    if (task !== undefined) return ["function", { ...task }];
    const { info, life, caller } = insideOf(value);
    caller.checkAlive();
    return life === undefined ? ["actor", info] : ["actor", info, life.owner, life.sequence];
  }

  #readReference(data: ReferenceData): object {
    if (data[0] === "function") return makeFunctionRef(data[1]);
    if (data[0] === "actor") {
      const [, info, owner, sequence] = data;
      if (owner === undefined || sequence === undefined) return this.weakHandle(info);
      const life = this.store.importReference(owner, sequence, `actor ${info.className}`);
      this.#handleCounts.watch(life, info.actorId, owner === this.id);
      return makeHandle(info, this, life);
    }
    this.#handleCounts.arm();
    return new ObjectRef(this.store.importReference(data[1], data[2], data[3]));
  }

  #declineReference(data: ReferenceData): void {
    if (data[0] === "function") return;
    const [owner, sequence] = data[0] === "object" ? [data[1], data[2]] : [data[2], data[3]];
    if (owner === undefined || sequence === undefined) return;
    this.store.declineReference(owner, sequence);
  }
}

function returnedOf(call: Call, returns: Returns): Returned {
  if (returns instanceof StreamState) return new ObjectRefGenerator(returns);
  if (!(returns instanceof ManyReturns) || returns.entries.length === 0) return undefined;
  for (const entry of returns.entries) entry.producer = call;
  return returns.entries.map((entry) => new ObjectRef(entry));
}

const none: ObjectEntry[] = [];

/** A list to put dependencies in; the one shared empty list if there will be none. */
function emptyFor(args: readonly unknown[]): ObjectEntry[] {
  for (let index = 0; index < args.length; index++) if (args[index] instanceof ObjectRef) return [];
  return none;
}
