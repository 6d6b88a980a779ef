/**
 * Objects between runtimes: asks owners for values and counts, answers those who ask us.
 *
 * An owner that is dead takes its counts along, and its objects fail with OwnerDiedError; one that cannot be reached is asked again (question.ts).
 */
import type { Codec, Encoded } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import { ObjectStoreFullError, ReferenceCountingError } from "../../shared/errors.ts";
import { messageOf, type ObjectEntry, type Outcome } from "../../store/object-entry.ts";
import type { StoreLink } from "../../store/store.ts";
import type { Session } from "../../rpc/session.ts";
import { Question, type QuestionLink } from "./question.ts";

/** What the exchange needs of its runtime. */
export interface ExchangeLink extends QuestionLink {
  readonly id: string;
  readonly codec: Codec;
  /** The one that counts of references go over. */
  sessionForCounts(hostId: string): Promise<Session>;
  settle(entry: ObjectEntry, value: Encoded): void;
  readFailure(error: Encoded): FailureData;
  describe(error: Error): FailureData;
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean;
  bringingHere(entries: readonly ObjectEntry[], resume: () => void): boolean;
}

export class ObjectExchange implements StoreLink {
  readonly #link: ExchangeLink;

  constructor(link: ExchangeLink) {
    this.#link = link;
  }

  changeReference(owner: string, objectId: string, holder: string, change: number): void {
    void this.#link.sessionForCounts(owner).then(
      (session) => session.send({ kind: "reference", objectId, holder, change }),
      () => undefined,
    );
  }

  fetch(owner: string, entry: ObjectEntry): void {
    const fail = (error: Error): void => entry.reject(this.#link.describe(error));
    if (owner === this.#link.id) return fail(new ReferenceCountingError(entry.id));
    const question = new Question(this.#link, entry, {
      whole: false,
      isWanted: () => entry.outcome === undefined,
      resolve: (value) => this.#link.settle(entry, value),
      reject: (error) => entry.reject(this.#link.readFailure(error)),
      refuse: (bytes, why) => fail(new ObjectStoreFullError(entry.label, bytes, why)),
      fail,
    });
    void question.ask();
  }

  /** The value of somebody else's object from its owner, wherever it is now. */
  fetchWhole(object: ObjectEntry): Promise<Outcome> {
    return new Promise((resolve) => {
      const fail = (error: Error): void =>
        resolve({ ok: false, failure: this.#link.describe(error) });
      const question = new Question(this.#link, object, {
        whole: true,
        isWanted: () => true,
        resolve: (value) => resolve({ ok: true, value }),
        reject: (error) => resolve({ ok: false, failure: this.#link.readFailure(error) }),
        refuse: (bytes, why) => fail(new ObjectStoreFullError(object.label, bytes, why)),
        fail,
      });
      void question.ask();
    });
  }

  /**
   * @param entry ours of that id, if we still hold it
   * @param whole nothing that stands for the value will do
   */
  answer(
    id: number,
    objectId: string,
    whole: boolean,
    entry: ObjectEntry | undefined,
    session: Session,
  ): void {
    const { codec } = this.#link;
    if (entry === undefined) {
      const error = codec.encodeFailure(new ReferenceCountingError(objectId));
      return session.answer({ kind: "failure", id, error });
    }
    const answer = (): void => {
      const isBringing = whole
        ? this.#link.bringingHere([entry], answer)
        : this.#link.bringing([entry], answer);
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
