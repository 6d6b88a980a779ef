/**
 * Objects between runtimes: asks owners for values and counts, answers those who ask us.
 *
 * A dead owner takes its counts along, and its objects fail with OwnerDiedError; an owner that
 * cannot be reached is asked again (question.ts).
 */
import type { Encoded } from "../../protocol/codec.ts";
import { ObjectStoreFullError, ReferenceCountingError } from "../../shared/errors.ts";
import { messageOf, type ObjectEntry, type Outcome } from "../../store/object-entry.ts";
import type { StoreLink } from "../../store/store.ts";
import type { FetchMessage } from "../../protocol/message.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { Values } from "../values.ts";
import { Question, type QuestionLink } from "./ask-owner.ts";
import { CopySearch } from "./copy-search.ts";
import type { StandIn } from "./results-at-their-host.ts";

/** See Sessions. */
export interface ExchangeSessions extends QuestionLink {
  forCounts(peerId: string): Promise<Session>;
}

/** See Objects. */
export interface ExchangeObjects {
  settle(entry: ObjectEntry, value: Encoded): void;
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean;
  copyOf(objectId: string, asker: string): Encoded | undefined;
  bringingHere(entries: readonly ObjectEntry[], resume: () => void): boolean;
}

/** Parts of the runtime, as functions, because these parts need the exchange themselves. */
export interface ExchangeParts {
  readonly id: string;
  readonly sessions: () => ExchangeSessions;
  readonly values: () => Values;
  readonly objects: () => ExchangeObjects;
}

export class ObjectExchange implements StoreLink {
  readonly #parts: ExchangeParts;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  changeReference(owner: string, objectId: string, holder: string, change: number): void {
    void this.#parts
      .sessions()
      .forCounts(owner)
      .then(
        (session) => session.send({ kind: "reference", objectId, holder, change }),
        () => undefined,
      );
  }

  fetch(owner: string, entry: ObjectEntry): void {
    const { id, sessions, objects } = this.#parts;
    const values = this.#parts.values();
    const fail = (error: Error): void => entry.reject(values.describe(error));
    if (owner === id) return fail(new ReferenceCountingError(entry.id));
    const question = new Question(sessions(), entry, {
      whole: false,
      isWanted: () => entry.outcome === undefined,
      resolve: (value) => objects().settle(entry, value),
      reject: (error) => entry.reject(values.readFailure(error)),
      refuse: (bytes, why) => fail(new ObjectStoreFullError(entry.label, bytes, why)),
      fail,
    });
    void question.ask();
  }

  /** The value of somebody else's object from its owner, wherever it is now. */
  fetchWhole(object: ObjectEntry): Promise<Outcome> {
    const { sessions } = this.#parts;
    const values = this.#parts.values();
    return new Promise((resolve) => {
      const fail = (error: Error): void => resolve({ ok: false, failure: values.describe(error) });
      const question = new Question(sessions(), object, {
        whole: true,
        isWanted: () => true,
        resolve: (value) => resolve({ ok: true, value }),
        reject: (error) => resolve({ ok: false, failure: values.readFailure(error) }),
        refuse: (bytes, why) => fail(new ObjectStoreFullError(object.label, bytes, why)),
        fail,
      });
      void question.ask();
    });
  }

  /** A copy of the value of our object, with one of `holders`. Removes those that have none. */
  findCopy(
    { id }: ObjectEntry,
    holders: Set<string>,
    limitMs: number,
  ): Promise<StandIn | undefined> {
    const sessions = this.#parts.sessions();
    return CopySearch.run({
      with: (peerId) => sessions.with(peerId),
      values: this.#parts.values(),
      objectId: id,
      holders,
      limitMs,
    });
  }

  /** @param entry our object of that id, if we still hold it */
  answer(
    { id, objectId, whole }: FetchMessage,
    entry: ObjectEntry | undefined,
    session: Session,
  ): void {
    const { codec } = this.#parts.values();
    const objects = this.#parts.objects();
    if (entry === undefined) {
      const copy = objects.copyOf(objectId, session.peerId);
      if (copy !== undefined) return session.answerFetch(id, copy);
      const error = codec.encodeFailure(new ReferenceCountingError(objectId));
      return session.answer({ kind: "failure", id, error });
    }
    const answer = (): void => {
      const isBringing = whole
        ? objects.bringingHere([entry], answer)
        : objects.bringing([entry], answer);
      if (isBringing) return;
      const { outcome } = entry;
      if (outcome?.ok === false) {
        const error = codec.encode(outcome.failure, "error");
        return session.answer({ kind: "failure", id, error });
      }
      const value = outcome === undefined ? undefined : messageOf(entry, outcome);
      if (value !== undefined) session.answerFetch(id, value);
    };
    entry.watch(answer);
  }
}
