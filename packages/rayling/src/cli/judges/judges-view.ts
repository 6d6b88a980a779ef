/**
 * The progress of several judges: one redrawn line for all on a terminal, a line for each
 * elsewhere.
 */

import { ProgressView } from "../output/progress-view.ts";
import type { RunView, ShownProgress } from "../output/progress-view.ts";

export class JudgesView {
  readonly #view = new ProgressView();
  readonly #names: readonly string[];
  readonly #last: Map<string, ShownProgress> = new Map();

  /** @param names of the judges, in the order of the line */
  constructor(names: readonly string[]) {
    this.#names = names;
  }

  of(name: string): RunView {
    return {
      everyMs: this.#view.everyMs,
      show: (progress) => {
        this.#last.set(name, progress);
        this.#show(name, progress);
      },
      // The line is that of all judges.
      close: () => undefined,
    };
  }

  close(): void {
    this.#view.close();
  }

  #show(name: string, progress: ShownProgress): void {
    if (!this.#view.isRedrawn) {
      this.#view.showNamed([[name, progress]]);
      return;
    }
    this.#view.showNamed(
      this.#names.flatMap((one): [string, ShownProgress][] => {
        const last = this.#last.get(one);
        return last === undefined ? [] : [[one, last]];
      }),
    );
  }
}
