/** The view of training runs, which are read on when it is asked for. */
import { HttpRefusal } from "@rayling/core/http";
import type { Views } from "../views/view.ts";
import { trainingAnswer, UnknownRun } from "./answers.ts";
import type { KnownRun, RunShelf } from "./run-shelf.ts";

export function trainingViews(shelf: RunShelf): Views {
  return {
    runs: async (query) => {
      const runs = await readOn(await shelf.known());
      try {
        return trainingAnswer(query, runs);
      } catch (error) {
        if (!(error instanceof UnknownRun)) throw error;
        throw new HttpRefusal(400, "invalid_request", error.message);
      }
    },
  };
}

/**
 * Returns the runs that can be read. A neighbour may have files of something else, and is left out;
 * one of this session is refused by name.
 */
async function readOn(runs: readonly KnownRun[]): Promise<readonly KnownRun[]> {
  const read = await Promise.allSettled(runs.map(({ shown }) => shown.refresh()));
  return runs.filter(({ isOwn }, at) => {
    const one = read[at];
    if (one?.status !== "rejected") return true;
    if (!isOwn) return false;
    const message = one.reason instanceof Error ? one.reason.message : String(one.reason);
    throw new HttpRefusal(422, "unreadable_run", message);
  });
}
