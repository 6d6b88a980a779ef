/**
 * The tasks of a worker: one runs, and short ones that were sent ahead stand behind it.
 *
 * While the one that runs waits for others, the worker's CPU is lent, and what stands behind it is
 * given back: it may be what is waited for.
 */
import { dueCollection } from "../../protocol/shared-memory.ts";
import type { Encoded } from "../../protocol/codec.ts";
import type { CallMessage } from "../../protocol/message.ts";
import type { Running } from "../../rpc/session/incoming-calls.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { TaskScope } from "../../caller/waits/task-scope.ts";
import type { Waiting } from "../../caller/waits/waiting-tasks.ts";
import type { Idleness } from "./idleness.ts";
import type { RunningTasks } from "./task-runner.ts";

export interface HostedTasksParts {
  readonly waiting: Waiting;
  readonly idleness: Idleness;
  /** Whether a task waits for the values of its arguments. */
  readonly awaitsArguments: () => boolean;
  /** Called when the worker becomes blocked, or stops being blocked. */
  readonly onBlocked: (isBlocked: boolean) => void;
  /** Runs a task to its end, with its answer sent. Never rejects. */
  readonly run: (call: CallMessage, session: Session) => Promise<void>;
}

/**
 * A task that has not begun. Only its cancellation can concern it: streams and tasks with signals
 * are sent when their worker is free, and begin in the turn in which they arrive.
 */
class StandingTask implements Running {
  readonly call: CallMessage;
  readonly session: Session;
  readonly #line: Set<StandingTask>;

  constructor(call: CallMessage, session: Session, line: Set<StandingTask>) {
    this.call = call;
    this.session = session;
    this.#line = line;
    line.add(this);
    session.calls.track(call.id, this);
  }

  /** Its turn has come. Returns whether its caller has not taken it back. */
  begins(): boolean {
    this.#leave();
    return this.session.calls.claims.begins(this.call.id);
  }

  /** It will not begin here. */
  giveBack(): void {
    this.#leave();
    this.session.answer({ kind: "absent", id: this.call.id });
  }

  cancel(): void {
    this.#leave();
    this.session.answer({ kind: "cancelled", id: this.call.id });
  }

  /** Refs among its arguments are let go with the answer that nobody hears. */
  callerLost(): void {
    this.#leave();
    this.session.answer({ kind: "gone", id: this.call.id });
  }

  #leave(): void {
    this.#line.delete(this);
    this.session.calls.untrack(this.call.id);
  }

  consumed(): void {}

  aborted(_index: number, reason: Encoded): void {
    this.session.calls.unread(reason);
  }
}

export class HostedTasks implements RunningTasks {
  readonly #parts: HostedTasksParts;
  readonly #running: Set<TaskScope> = new Set();
  /** In the order in which they came. */
  readonly #standing: Set<StandingTask> = new Set();
  #isBusy = false;
  #isBlocked = false;

  constructor(parts: HostedTasksParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#running.size + this.#standing.size;
  }

  /** Runs a task, now or after those that came before it. */
  receive(call: CallMessage, session: Session): void {
    const task = new StandingTask(call, session, this.#standing);
    if (!this.#isBusy) void this.#runAll();
    else if (this.#isBlocked) task.giveBack();
  }

  async #runAll(): Promise<void> {
    this.#isBusy = true;
    try {
      for (const next of this.#standing) {
        if (!next.begins()) {
          next.giveBack();
          continue;
        }
        await this.#parts.run(next.call, next.session);
        // Tasks may follow each other without a turn, and what they drop would stay.
        const collection = dueCollection();
        if (collection !== undefined) await collection;
      }
    } finally {
      this.#isBusy = false;
    }
  }

  begun(task: TaskScope): void {
    const { idleness } = this.#parts;
    idleness.look();
    idleness.begun();
    this.#running.add(task);
    this.look();
  }

  ended(task: TaskScope): void {
    this.#parts.idleness.ended(1);
    this.#running.delete(task);
    // Waits that an earlier task left behind do not count for the next one.
    this.look();
  }

  /** Reports a change of the blocked state. */
  look(): void {
    const isBlocked = this.#waits();
    if (isBlocked === this.#isBlocked) return;
    this.#isBlocked = isBlocked;
    if (isBlocked) for (const task of this.#standing) task.giveBack();
    this.#parts.onBlocked(isBlocked);
  }

  #waits(): boolean {
    const { waiting, awaitsArguments } = this.#parts;
    if (this.#running.size === 0) return awaitsArguments() && waiting.isWaitingIn(undefined);
    for (const task of this.#running) if (!waiting.isWaitingIn(task)) return false;
    return true;
  }
}
