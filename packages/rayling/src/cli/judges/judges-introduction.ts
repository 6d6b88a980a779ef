/** The first line of a scoring: what it does, by what, and how to stop it. */
import { wrapped } from "@rayling/core/terminal";
import { grouped } from "../output/numbers.ts";
import { plain, tell } from "../output/output.ts";
import { shortPath } from "../output/short-path.ts";
import { STDOUT } from "../score/score-options.ts";
import type { ScoreOptions } from "../score/score-options.ts";

/** @param judges the options of each of them; @param total the number of solutions */
export function introduceScoring(judges: readonly ScoreOptions[], total: number): void {
  const text = scoringText(judges, total);
  tell(`${wrapped(plain(text), process.stderr).join("\n")}\n`);
}

export function scoringText(judges: readonly ScoreOptions[], total: number): string {
  const [first] = judges;
  if (first === undefined) return "";
  const { latencyMs, workers, concurrency, solutions, out, baseline } = first;
  const by = judges.map((one) => nameOf(one)).filter((one) => one !== undefined);
  const judge =
    latencyMs === undefined
      ? ""
      : ` (each call waits ${latencyMs.join(" to ")} ms more, as for a slow judge)`;
  const again = `Then it scores up to ${grouped(Math.min(baseline, total))} of them again, one at a time, to measure the speed-up (--baseline 0: none). `;
  return [
    `Scoring ${grouped(total)} solutions of ${shortPath(solutions)}`,
    ...(by.length === 0 ? [] : [` by ${by.join(" and ")}`]),
    `${judge}, ${grouped(workers)} workers x ${grouped(concurrency)} at a time. `,
    ...(baseline === 0 ? [] : [again]),
    `Ctrl-C stops it${out === STDOUT ? "" : "; --resume goes on"}.`,
  ].join("");
}

function nameOf({ reward, judge, rewards, replay, manager }: ScoreOptions): string | undefined {
  const path = reward ?? judge ?? rewards ?? replay;
  return path === undefined ? `the manager ${manager}` : shortPath(path);
}
