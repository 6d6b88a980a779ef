/**
 * One caller's tasks: each runs once on a leased worker, when its arguments are ready.
 *
 * Tasks have no order among each other. A worker is leased from the directory while there is work
 * and given back when there is none. A worker that dies costs the task that it ran one of
 * `maxRetries`; used up, the task fails with WorkerCrashedError. Tasks of a few ms are sent ahead
 * (leased-worker.ts), and taken back when the one before them takes long, or another worker has
 * none.
 */
import type { WorkerLease, WorkerRequest } from "../../../rpc/directory.ts";
import type { Session } from "../../../rpc/session/session.ts";
import { clockMs } from "../../../shared/clock.ts";
import { type DeathCause, RaySystemError, taskDeath } from "../../../shared/errors.ts";
import { Fifo } from "../../../shared/fifo.ts";
import type { Call, CallOwner, CallPlan, HowLost, Stage } from "../call.ts";
import type { ClientLink } from "../client-link.ts";
import { type LeasedWorker, LeasedWorkers } from "./leased-worker.ts";

/** Tasks that need the same of their worker share leases. */
interface TaskQueue {
  readonly worker: WorkerRequest;
  readonly ready: Fifo<Call>;
  /** Tickets of the leases that it has asked for. */
  readonly asked: Set<number>;
  unanswered: number;
  /** Workers in a row that could not be reached. */
  unreached: number;
}

/**
 * Leases asked for at once, beyond those running. The directory queues them, and more requests
 * would tell it nothing new.
 */
const maxAsking = 4;

/**
 * A lease ends after this time if others wait for a worker; asking again costs some microseconds.
 */
const longestLeaseMs = 100;

const mostUnreached = 5;

/** Ends after which the task has no place to be tried again. */
const finalKinds: ReadonlySet<DeathCause["kind"]> = new Set([
  "shutdown",
  "unschedulable",
  "placement-group-removed",
  "runtime-env-failed",
]);

export class TaskClient implements CallOwner {
  readonly link: ClientLink;
  readonly info: undefined = undefined;
  /**
   * Queues with unanswered tasks, or for which a worker is asked. Others are removed, because every
   * placement group makes new ones.
   */
  readonly #queues: Map<string, TaskQueue> = new Map();
  readonly #workers: LeasedWorkers;
  /** Tasks whose arguments are not ready. */
  readonly #parked: Set<Call> = new Set();
  #tickets = 0;

  constructor(link: ClientLink) {
    this.link = link;
    this.#workers = new LeasedWorkers(
      (call) => this.#enqueue(call),
      (hostId) => void link.directory.endWorker(hostId),
    );
  }

  /** Tasks that wait here: for an argument or for a worker. */
  get queued(): number {
    return [...this.#queues.values()].reduce(
      (sum, queue) => sum + queue.ready.size,
      this.#parked.size,
    );
  }

  /** Tasks wait in the queue of those that need the same of their worker. */
  queueFor(plan: CallPlan): Fifo<Call> {
    return this.#queueOf(plan).ready;
  }

  #queueOf({ worker, route }: CallPlan): TaskQueue {
    if (worker === undefined) throw new RaySystemError(`task ${route.method} asks for no worker`);
    let queue = this.#queues.get(worker.key);
    if (queue === undefined) {
      queue = { worker, ready: new Fifo(), asked: new Set(), unanswered: 0, unreached: 0 };
      this.#queues.set(worker.key, queue);
    }
    return queue;
  }

  submit(call: Call): void {
    this.#queueOf(call.plan).unanswered += 1;
    for (const dependency of call.args.dependencies) {
      if (dependency.outcome !== undefined) continue;
      call.unresolved += 1;
      dependency.watch(() => {
        call.unresolved -= 1;
        if (call.unresolved === 0 && this.#parked.delete(call)) this.#enqueue(call);
      });
    }
    if (call.unresolved === 0) this.#enqueue(call);
    else this.#parked.add(call);
  }

  stageOf(): Stage {
    return "worker";
  }

  /** Tasks that were not sent. */
  *calls(): Iterable<Call> {
    for (const queue of this.#queues.values()) yield* queue.ready;
    yield* this.#parked;
  }

  settled(call: Call): void {
    const queue = this.#queueOf(call.plan);
    queue.unanswered -= 1;
    this.#forgetIdle(queue);
    const { session } = call;
    if (session === undefined) return;
    this.#workers.answered(call, session);
    this.#next(queue, session);
  }

  /** Nobody waits for an answer, and no worker is asked for. */
  #forgetIdle(queue: TaskQueue): void {
    const { key } = queue.worker;
    const isIdle = queue.unanswered === 0 && queue.asked.size === 0;
    if (isIdle && this.#queues.get(key) === queue) this.#queues.delete(key);
  }

  again(call: Call): void {
    const { session } = call;
    call.queue.push(call);
    if (session === undefined) return;
    this.#workers.answered(call, session);
    this.#next(this.#queueOf(call.plan), session);
    this.#ask(this.#queueOf(call.plan));
  }

  lost(call: Call, how: HowLost): void {
    const { session } = call;
    // It stood behind another, with which it was lost.
    if (session === undefined) return;
    const worker = this.#workers.at(session);
    const mayHaveBegun = worker?.mayHaveBegun(call) ?? true;
    call.leavePlace();
    worker?.returned(call);
    if (how === "absent" && session.isOpen) {
      this.#enqueue(call);
      return this.#next(this.#queueOf(call.plan), session);
    }
    this.#release(session.peerId);
    const others = session.isOpen ? [] : (worker?.all ?? []);
    for (const other of others) {
      const hasBegun = worker?.mayHaveBegun(other) === true && !other.isCancelled;
      other.leavePlace();
      this.#wasLost(other, how, hasBegun);
    }
    this.#wasLost(call, how, mayHaveBegun);
  }

  /** One that never began is not a retry when it is sent again. */
  #wasLost(call: Call, how: HowLost, hasBegun: boolean): void {
    if (how === "absent" || !hasBegun) return this.#enqueue(call);
    const reason: DeathCause =
      how === "gone" ? { kind: "unreachable", message: "its worker takes no more tasks" } : how;
    if (call.retriesLeft !== 0 && !finalKinds.has(reason.kind)) {
      call.retriesLeft -= 1;
      call.mayHaveRun = true;
      this.#enqueue(call);
    } else {
      call.fail(this.link.values.describe(taskDeath(call.entry.label, reason)));
    }
  }

  takeBack(call: Call): void {
    if (call.session !== undefined) this.#workers.at(call.session)?.takesBack(call);
  }

  /** The directory is not to keep room for what nobody will run. */
  withdrawn(call: Call): void {
    if (this.#parked.delete(call)) return;
    const queue = this.#queueOf(call.plan);
    while (queue.ready.peek()?.isSettled === true) queue.ready.shift();
    for (const ticket of [...queue.asked].slice(queue.ready.size)) {
      queue.asked.delete(ticket);
      this.link.directory.withdrawWorker(ticket);
    }
    this.#forgetIdle(queue);
  }

  /** The worker ends now, and with it the task: as soon as those before it are answered. */
  force(call: Call): void {
    if (call.session !== undefined) this.#workers.force(call, call.session);
  }

  #enqueue(call: Call): void {
    if (call.isSettled) return;
    for (const { outcome } of call.args.dependencies) {
      if (outcome?.ok === false) return call.fail(outcome.failure);
    }
    call.queue.push(call);
    this.#ask(this.#queueOf(call.plan));
  }

  #ask(queue: TaskQueue): void {
    while (queue.asked.size < Math.min(queue.ready.size, maxAsking)) {
      const ticket = this.#tickets++;
      queue.asked.add(ticket);
      void this.#lease(queue, ticket);
    }
  }

  async #lease(queue: TaskQueue, ticket: number): Promise<void> {
    let lease: WorkerLease;
    try {
      lease = await this.link.directory.leaseWorker(queue.worker, ticket);
    } catch (error) {
      queue.asked.delete(ticket);
      const failure = this.link.values.describe(error);
      for (const call of queue.ready.drain()) call.fail(failure);
      return this.#forgetIdle(queue);
    }
    queue.asked.delete(ticket);
    this.#forgetIdle(queue);
    if (lease.state === "withdrawn") return this.#ask(queue);
    if (lease.state === "refused") return withoutWorker(queue, this.link, lease.cause);
    const { hostId } = lease;
    const oneTask = queue.worker.demand.strategy.kind === "SPREAD";
    const untilMs = oneTask ? 0 : clockMs() + longestLeaseMs;
    let unreached = "";
    const session = await this.link.session(hostId).catch((error: Error) => {
      unreached = error.message;
      return undefined;
    });
    if (session === undefined) {
      this.#release(hostId);
      this.#outOfReach(queue, unreached);
    } else {
      queue.unreached = 0;
      this.#workers.add(session, untilMs);
      this.#run(queue, session);
    }
    this.#ask(queue);
  }

  /** One that died meanwhile is no matter; several in a row are no accident. */
  #outOfReach(queue: TaskQueue, message: string): void {
    queue.unreached += 1;
    if (queue.unreached < mostUnreached) return;
    queue.unreached = 0;
    withoutWorker(queue, this.link, {
      kind: "unreachable",
      message: `no worker can be reached from here: ${message}`,
    });
  }

  /**
   * Runs the next task, unless it is others' turn: a caller that waits for the same resources must
   * not wait for all tasks of this one.
   */
  #next(queue: TaskQueue, session: Session): void {
    const worker = this.#workers.at(session);
    if (worker === undefined) return this.#ask(queue);
    if (clockMs() < worker.untilMs) return this.#run(queue, session);
    if (!worker.isIdle) return;
    this.#release(session.peerId);
    this.#ask(queue);
  }

  #release(hostId: string): void {
    this.#workers.delete(hostId);
    this.link.directory.releaseWorker(hostId);
  }

  #run(queue: TaskQueue, session: Session): void {
    const worker = this.#workers.at(session);
    if (worker === undefined) return;
    while (session.isOpen) {
      const call = queue.ready.peek() ?? fromAnother(this.#workers, queue, worker);
      if (call === undefined) break;
      if (!call.isSettled && !worker.isIdle && !worker.takes(call, clockMs())) break;
      queue.ready.shift();
      if (call.isSettled) continue;
      if (this.#remaking(call)) continue;
      if (
        this.link.objects.bringing(call.args.dependencies, () => this.#resume(call, queue, session))
      )
        return;
      worker.send(call);
    }
    if (worker.hasStanding) this.#workers.watchLongTasks();
    if (!worker.isIdle) return;
    this.#release(session.peerId);
    this.#ask(queue);
  }

  /**
   * Making an argument again needs a worker itself, so this worker is given to others meanwhile.
   */
  #remaking(call: Call): boolean {
    if (!call.args.dependencies.some(({ outcome }) => outcome?.away?.isLost?.() === true))
      return false;
    this.#parked.add(call);
    return this.link.objects.bringing(call.args.dependencies, () => {
      if (this.#parked.delete(call)) this.#enqueue(call);
    });
  }

  /** Its arguments had been away, and much may have happened meanwhile. */
  #resume(call: Call, queue: TaskQueue, session: Session): void {
    const worker = this.#workers.at(session);
    if (!call.isSettled && session.isOpen && worker !== undefined) worker.send(call);
    else this.#enqueue(call);
    if (call.session === undefined) this.#next(queue, session);
  }
}

/** Fails the tasks of a queue, which no worker was given. */
function withoutWorker({ ready }: TaskQueue, { values }: ClientLink, cause: DeathCause): void {
  for (const call of ready.drain()) {
    const attempts = call.mayHaveRun ? "sent-before" : "unsent";
    call.fail(values.describe(taskDeath(call.entry.label, cause, attempts)));
  }
}

/** For a worker that would be idle: a task that stood behind another one, ready again. */
function fromAnother(
  workers: LeasedWorkers,
  { worker: { key }, ready }: TaskQueue,
  worker: LeasedWorker,
): Call | undefined {
  const call = worker.isIdle ? workers.takeBackOne(key) : undefined;
  if (call !== undefined) ready.push(call);
  return call;
}
