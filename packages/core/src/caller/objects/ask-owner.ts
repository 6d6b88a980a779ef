/**
 * Asks the owner of an object for its value. When the connection to the owner is lost, it asks
 * again over a new one.
 *
 * It ends once: with the answer; with OwnerDiedError when the directory says that the owner is
 * dead; with SessionEndedError when the session is over; or, while the owner lives, when no new
 * connection is found in `outOfReachMs`. A value that breaks the connection it comes by does not
 * break a third one.
 */
import type { Encoded } from "../../protocol/codec.ts";
import type { Answer } from "../../protocol/message.ts";
import type { Session } from "../../rpc/session/session.ts";
import { clockMs } from "../../shared/clock.ts";
import {
  type DeathCause,
  ObjectFetchTimedOutError,
  ObjectLostError,
  ownerDeath,
  type RayError,
} from "../../shared/errors.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { timers } from "../../shared/machine/timers.ts";

/** How long the directory has to say that a host which cannot be reached is dead. */
export const outOfReachMs: number = 5000;

/** Waits between tries, each twice the one before. */
const pauseMs = { first: 20, longest: 1000 } as const;

export interface QuestionLink {
  with(hostId: string): Promise<Session>;
  /** Calls back when that host is dead, or this runtime ends. Returns the end of that wish. */
  whenDead(hostId: string, watcher: (cause: DeathCause) => void): () => void;
}

export interface Asker {
  /** Nothing stands for the value in the answer. */
  readonly whole: boolean;
  /** False when the answer came otherwise. */
  isWanted(): boolean;
  resolve(value: Encoded): void;
  reject(error: Encoded): void;
  refuse(bytes: number, why: string): void;
  fail(error: RayError): void;
}

export class Question {
  readonly #link: QuestionLink;
  readonly #object: ObjectEntry;
  readonly #asker: Asker;
  readonly #outOfReachMs: number;
  #askedAt = 0;
  /** When the way was lost that no other has made up for yet, by holding for long enough. */
  #lostAt: number | undefined;
  #pauseMs = 0;
  #broken = 0;

  constructor(
    link: QuestionLink,
    object: ObjectEntry,
    asker: Asker,
    limitMs: number = outOfReachMs,
  ) {
    this.#link = link;
    this.#object = object;
    this.#asker = asker;
    this.#outOfReachMs = limitMs;
  }

  async ask(): Promise<void> {
    const { id, owner } = this.#object;
    const asker = this.#asker;
    let session: Session;
    try {
      session = await this.#link.with(owner);
    } catch (error) {
      return this.#lost({ kind: "unreachable", message: String(error) });
    }
    if (!session.isOpen) {
      return this.#lost({ kind: "unreachable", message: "it is not connected" });
    }
    this.#askedAt = clockMs();
    session.requests.fetch({
      objectId: id,
      whole: asker.whole,
      pending: {
        isCall: false,
        settle: (answer) => this.#settle(answer),
        refuse: (bytes, why) => asker.refuse(bytes, why),
        lose: (reason) => this.#lost(reason),
      },
    });
  }

  #settle(answer: Answer): void {
    if (answer.kind === "result") return this.#asker.resolve(answer.value);
    if (answer.kind === "failure") return this.#asker.reject(answer.error);
    this.#lost({ kind: "channel-broken", message: `its owner answered "${answer.kind}"` });
  }

  /** Waits a while for the directory to say that the owner is dead, and tries again. */
  #lost(reason: DeathCause): void {
    if (!this.#asker.isWanted()) return;
    const now = clockMs();
    const lostAt = this.#lostAt ?? now;
    const hasHeld = this.#askedAt > lostAt && now - this.#askedAt > this.#outOfReachMs;
    if (this.#lostAt === undefined || hasHeld) {
      this.#lostAt = now;
      this.#pauseMs = pauseMs.first;
    }
    if (reason.kind === "channel-broken") this.#broken += 1;
    let isOver = false;
    const endWatching = this.#link.whenDead(this.#object.owner, (cause) => {
      isOver = true;
      this.#asker.fail(ownerDeath(this.#object.id, cause));
    });
    // The code that waits for the answer keeps the thread alive.
    timers
      .setTimeout(() => {
        if (isOver) return;
        endWatching();
        this.#again(reason);
      }, this.#pauseMs)
      .unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, pauseMs.longest);
  }

  #again({ message }: DeathCause): void {
    if (!this.#asker.isWanted()) return;
    const { id, owner } = this.#object;
    if (this.#broken > 1) {
      const text = `object ${id} was asked for twice, and both times the way to its owner broke: ${message}`;
      return this.#asker.fail(new ObjectLostError(id, text));
    }
    if (clockMs() - (this.#lostAt ?? 0) > this.#outOfReachMs) {
      return this.#asker.fail(new ObjectFetchTimedOutError(id, owner, this.#outOfReachMs, message));
    }
    void this.ask();
  }
}
