/**
 * Failures that nobody saw: a warning reports them when the last reference to the object is gone,
 * or when the runtime ends.
 *
 * Only failed objects are watched, from their failure until it is seen: values cost nothing. As in
 * Ray, user errors and crashes of workers count; the death of an actor and a cancellation do not,
 * because their causer knows them. A ref that is passed on as an argument counts as seen: the
 * failure goes on as that call's own. RAYLING_IGNORE_UNHANDLED_ERRORS=1 turns the warnings off.
 */
import type { FailureData } from "../protocol/failure.ts";
import { threadSlot } from "../shared/thread-slot.ts";
import { show } from "../shared/text/show.ts";
import { warn } from "../shared/text/warning.ts";

/** Further failures are only counted: this many messages suffice. */
const maxKept = 1000;

interface Unhandled {
  readonly registry: FinalizationRegistry<Failed>;
  /** Failures of living objects. */
  readonly kept: Set<Failed>;
}

interface Failed {
  readonly message: string;
}

const unhandled: Unhandled = threadSlot("unhandled", () => {
  const kept = new Set<Failed>();
  return {
    kept,
    registry: new FinalizationRegistry<Failed>((failed) => {
      if (kept.delete(failed)) tell(failed.message);
    }),
  };
});

/** The failure of one object, which counts as seen when it is read. */
export class SeenFailure {
  readonly #failure: FailureData;
  #isSeen = false;
  #watched: Failed | undefined;

  constructor(failure: FailureData) {
    this.#failure = failure;
  }

  read(): FailureData {
    this.#isSeen = true;
    if (this.#watched !== undefined && unhandled.kept.delete(this.#watched)) {
      unhandled.registry.unregister(this);
    }
    return this.#failure;
  }

  /** Returns a summary without marking the failure as seen. */
  get summary(): { readonly name: string; readonly message: string } {
    const { name, message } = this.#failure;
    return { name, message };
  }

  /**
   * Warns when `entry` is gone, unless the failure was read before. It runs while an answer is
   * read, so it throws nothing, whatever the user threw.
   */
  watch(entry: object, label: string): void {
    const { site, name } = this.#failure;
    const counts = site !== undefined || name === "WorkerCrashedError";
    if (this.#isSeen || !counts || unhandled.kept.size >= maxKept) return;
    if (process.env["RAYLING_IGNORE_UNHANDLED_ERRORS"] === "1") return;
    this.#watched = { message: `${label}: ${textOf(this.#failure)}` };
    unhandled.kept.add(this.#watched);
    unhandled.registry.register(entry, this.#watched, this);
  }
}

/** Warns of all unseen failures at the end of the runtime. */
export function tellUnhandled(): void {
  const failed = [...unhandled.kept];
  unhandled.kept.clear();
  for (const { message } of failed.slice(0, 3)) tell(message);
  if (failed.length > 3) tell(`${failed.length - 3} more errors were never handled`);
}

function textOf(failure: FailureData): string {
  if (failure.thrown !== undefined) return `threw ${show(failure.thrown.value)}`;
  return failure.stack === "" ? `${failure.name}: ${failure.message}` : failure.stack;
}

function tell(text: string): void {
  warn(`Unhandled error of a call (RAYLING_IGNORE_UNHANDLED_ERRORS=1 turns this off): ${text}`);
}
