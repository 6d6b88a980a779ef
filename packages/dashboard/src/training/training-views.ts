/** The view of training runs, which are read on when it is asked for. */
import { HttpRefusal } from "@rayling/core/http";
import type { Views } from "../views/view.ts";
import { trainingAnswer, UnknownRun } from "./answers.ts";
import type { RunShelf } from "./run-shelf.ts";

export function trainingViews(shelf: RunShelf): Views {
  return {
    runs: async (query) => {
      const runs = await shelf.known();
      await Promise.all(runs.map(({ shown }) => shown.refresh()));
      try {
        return trainingAnswer(query, runs);
      } catch (error) {
        if (!(error instanceof UnknownRun)) throw error;
        throw new HttpRefusal(400, "invalid_request", error.message);
      }
    },
  };
}
