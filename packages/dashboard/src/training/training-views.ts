/** Views of training runs: which there are, and curves of some of them. */
import { HttpRefusal } from "@rayling/core/http";
import type { Views } from "../views/view.ts";
import type { Curve } from "./run-metrics.ts";
import type { KnownRun, RunShelf } from "./run-shelf.ts";

/** Metrics of one answer, and points of one curve, at most. */
const mostMetrics = 24;
const mostPoints = 500;

/** Shown where no words are asked for, as far as a run has them. */
const main: readonly RegExp[] = [
  /^critic\/score\/mean$/,
  /^val-core\//,
  /^actor\/pg_loss$/,
  /^actor\/ppo_kl$/,
  /^actor\/entropy$/,
  /^actor\/lr$/,
  /^actor\/grad_norm$/,
  /^response_length\/mean$/,
  /^timing_s\/step$/,
  /^reward\/exposed_wait_s$/,
  /^overlap_ratio$/,
  /staleness/,
];

export function trainingViews(shelf: RunShelf): Views {
  return {
    runs: async () => {
      const runs = await shelf.known();
      await Promise.all(runs.map(({ metrics }) => metrics.refresh()));
      return { runs: runs.map(({ metrics, ...run }) => ({ ...run, lastStep: metrics.lastStep })) };
    },
    curves: async (query) => {
      const asked = runsIn(query, await shelf.known());
      await Promise.all(asked.map(({ metrics }) => metrics.refresh()));
      const names = [...new Set(asked.flatMap(({ metrics }) => [...metrics.curves.keys()]))];
      const wanted = wantedOf(names, query.get("text") ?? "");
      return {
        total: names.length,
        found: wanted.length,
        metrics: wanted.slice(0, mostMetrics).map((name) => ({
          name,
          curves: asked.flatMap(({ run, metrics }) => {
            const curve = metrics.curves.get(name);
            return curve === undefined ? [] : [{ run, ...thinned(curve) }];
          }),
        })),
      };
    },
  };
}

/** Query: `runs`, numbers with commas. Throws HttpRefusal. */
function runsIn(query: URLSearchParams, known: readonly KnownRun[]): readonly KnownRun[] {
  const numbers = (query.get("runs") ?? "").split(",").filter((text) => text !== "");
  return numbers.map((text) => {
    const run = known.find((one) => String(one.run) === text);
    if (run !== undefined) return run;
    throw new HttpRefusal(400, "invalid_request", `there is no run ${text.slice(0, 20)}`);
  });
}

function wantedOf(names: readonly string[], text: string): readonly string[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length > 0) {
    return names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  }
  return main.flatMap((pattern) => names.filter((name) => pattern.test(name)));
}

/** Keeps the last point, and one of every few before it. */
function thinned({ steps, values }: Curve): Curve {
  const every = Math.ceil(steps.length / mostPoints);
  const isKept = (_: number, at: number): boolean => (steps.length - 1 - at) % every === 0;
  return { steps: steps.filter(isKept), values: values.filter(isKept) };
}
