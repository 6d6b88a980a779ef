/**
 * Objects between runtimes: asks owners for values and counts, answers those who ask us.
 *
 * An owner that cannot be reached is gone: its objects fail with OwnerDiedError, and its counts went with it.
 */
import type { Codec, Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import { ObjectStoreFullError, OwnerDiedError, ReferenceCountingError } from "../shared/errors.ts";
import { messageOf, type ObjectEntry, type Outcome } from "../store/object-entry.ts";
import type { StoreLink } from "../store/store.ts";
import type { Session } from "../rpc/session.ts";

/** What the exchange needs of its runtime. */
export interface ExchangeLink {
  readonly id: string;
  readonly codec: Codec;
  session(hostId: string): Promise<Session | undefined>;
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
    void this.#link.session(owner).then(
      (session) => session?.changeReference(objectId, holder, change),
      () => undefined,
    );
  }

  fetch(owner: string, entry: ObjectEntry): void {
    void this.#fetch(owner, entry);
  }

  async #fetch(owner: string, entry: ObjectEntry): Promise<void> {
    const objectId = entry.id;
    const fail = (error: Error): void => entry.reject(this.#link.describe(error));
    if (owner === this.#link.id) return fail(new ReferenceCountingError(objectId));
    try {
      const session = await this.#link.session(owner);
      if (session === undefined || !session.isOpen) {
        return fail(new OwnerDiedError(objectId, "it is not connected"));
      }
      session.fetch(objectId, false, {
        resolve: (value) => this.#link.settle(entry, value),
        reject: (error) => entry.reject(this.#link.readFailure(error)),
        refuse: (bytes, why) => fail(new ObjectStoreFullError(entry.label, bytes, why)),
        lose: (reason) => fail(new OwnerDiedError(objectId, reason.message)),
      });
    } catch (error) {
      fail(new OwnerDiedError(objectId, String(error)));
    }
  }

  /** The value of somebody else's object from its owner, wherever it is now. */
  async fetchWhole(object: ObjectEntry): Promise<Outcome> {
    const fail = (error: Error): Outcome => ({ ok: false, failure: this.#link.describe(error) });
    const session = await this.#link.session(object.owner).catch(() => undefined);
    if (session === undefined || !session.isOpen) {
      return fail(new OwnerDiedError(object.id, "it is not connected"));
    }
    return new Promise((resolve) =>
      session.fetch(object.id, true, {
        resolve: (value) => resolve({ ok: true, value }),
        reject: (error) => resolve({ ok: false, failure: this.#link.readFailure(error) }),
        refuse: (bytes, why) => resolve(fail(new ObjectStoreFullError(object.label, bytes, why))),
        lose: (reason) => resolve(fail(new OwnerDiedError(object.id, reason.message))),
      }),
    );
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
      return session.answerFailure(id, codec.encodeFailure(new ReferenceCountingError(objectId)));
    }
    const answer = (): void => {
      const isBringing = whole
        ? this.#link.bringingHere([entry], answer)
        : this.#link.bringing([entry], answer);
      if (isBringing) return;
      const { outcome } = entry;
      if (outcome?.ok === false) {
        session.answerFailure(id, codec.encode(outcome.failure, "error"));
        return;
      }
      const value = outcome === undefined ? undefined : messageOf(entry, outcome);
      if (value !== undefined) session.answerFetch(id, value);
    };
    entry.watch(answer);
  }
}
