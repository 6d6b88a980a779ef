/**
 * Asks the runtimes that were given an object whether one of them has a copy of its value: the host
 * that kept the value is gone.
 *
 * All are asked at once. The first that has a copy answers with a stub of it; later stubs are
 * declined. It ends, too, when all have answered that they have none or are lost, and when those
 * that are left do not answer for a while: they stand still, or code of theirs holds the thread.
 */
import type { Encoded } from "../../protocol/codec.ts";
import type { Answer } from "../../protocol/message.ts";
import type { Requests } from "../../rpc/session/requests.ts";
import { timers } from "../../shared/machine/timers.ts";
import { entryOf } from "../../store/object-ref.ts";
import type { Values } from "../values.ts";
import { type StandIn, standInOf } from "./results-at-their-host.ts";

/** See Session. */
interface Asked {
  readonly isOpen: boolean;
  readonly requests: Pick<Requests, "fetch">;
}

export interface CopySearchParts {
  readonly with: (peerId: string) => Promise<Asked>;
  readonly values: Pick<Values, "codec" | "decline">;
  readonly objectId: string;
  /** Each is asked. The search removes a holder that has no copy or does not answer. */
  readonly holders: Set<string>;
  readonly limitMs: number;
}

export class CopySearch {
  readonly #parts: CopySearchParts;
  readonly #asked: Set<string>;
  readonly #found: (copy: StandIn | undefined) => void;
  readonly #timer: NodeJS.Timeout;
  #isOver = false;

  private constructor(parts: CopySearchParts, found: (copy: StandIn | undefined) => void) {
    this.#parts = parts;
    this.#asked = new Set(parts.holders);
    this.#found = found;
    // The code that waits for the value keeps the thread alive.
    this.#timer = timers.setTimeout(() => this.#giveUp(), parts.limitMs).unref();
    for (const holder of this.#asked) void this.#ask(holder);
  }

  /** Resolves with undefined when none has a copy. */
  static run(parts: CopySearchParts): Promise<StandIn | undefined> {
    if (parts.holders.size === 0) return Promise.resolve(undefined);
    return new Promise((resolve) => void new CopySearch(parts, resolve));
  }

  async #ask(holder: string): Promise<void> {
    const none = (): void => this.#none(holder);
    let session: Asked;
    try {
      session = await this.#parts.with(holder);
    } catch {
      // It is gone, and its copy with it.
      return none();
    }
    if (!session.isOpen) return none();
    session.requests.fetch({
      objectId: this.#parts.objectId,
      whole: false,
      pending: {
        isCall: false,
        settle: (answer) => this.#answered(holder, answer),
        refuse: none,
        lose: none,
      },
    });
  }

  #answered(holder: string, answer: Answer): void {
    if (answer.kind !== "result") return this.#none(holder);
    if (this.#isOver) return this.#parts.values.decline(answer.value);
    const copy = this.#read(holder, answer.value);
    if (copy === undefined) this.#none(holder);
    else this.#end(copy);
  }

  /** Nobody speaks for another runtime, and what cannot be read is no copy. */
  #read(holder: string, value: Encoded): StandIn | undefined {
    const { codec } = this.#parts.values;
    try {
      codec.claim(value);
      const copy = standInOf(codec.decode(value));
      return entryOf(copy.kept).owner === holder ? copy : undefined;
    } catch {
      return undefined;
    }
  }

  #none(holder: string): void {
    if (this.#isOver) return;
    this.#parts.holders.delete(holder);
    this.#asked.delete(holder);
    if (this.#asked.size === 0) this.#end(undefined);
  }

  #giveUp(): void {
    for (const holder of this.#asked) this.#parts.holders.delete(holder);
    this.#end(undefined);
  }

  #end(copy: StandIn | undefined): void {
    this.#isOver = true;
    timers.clearTimeout(this.#timer);
    this.#found(copy);
  }
}
