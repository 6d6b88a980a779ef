/** The data of a page that is a file: runs, and their answers to what a room asks. */
import type { ReportData, SavedRun, ShownRun } from "@rayling/trainer/runs";
import { trainingAnswer } from "../../../src/training/answers.ts";

/** Answers of a page that is a file. */
export interface Report {
  readonly title: string;
  /** Throws for a query that makes no sense. */
  readonly answer: (name: string, query: URLSearchParams) => unknown;
}

/** Undefined: the page has a server. */
export const report: Report | undefined = reportIn(document.getElementById("report"));

function reportIn(element: HTMLElement | null): Report | undefined {
  if (element === null) return undefined;
  const { title, runs } = JSON.parse(element.textContent) as ReportData;
  const numbered = runs.map((one, run) => ({ run, isOwn: true, shown: shownRun(one) }));
  const views: Readonly<Record<string, (query: URLSearchParams) => unknown>> = {
    rooms: () => ({ rooms: ["runs"], canKill: false }),
    runs: (query) => trainingAnswer(query, numbered),
  };
  return { title, answer: (name, query) => views[name]?.(query) };
}

function shownRun({ steps, ...run }: SavedRun): ShownRun {
  const byStep = new Map(steps.map((one) => [one.step, one]));
  return {
    ...run,
    steps: [...byStep.keys()],
    phasesOf: (wanted) => wanted.flatMap((step) => byStep.get(step) ?? []),
  };
}
