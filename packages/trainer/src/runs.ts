/**
 * Public names of @rayling/trainer/runs: training runs as their page shows them, read from their
 * folders; a separate entry, for the live page.
 */

export type { InFlight } from "./tracking/report/in-flight.ts";
export type { ReportData, SavedRun } from "./tracking/report/report-page.ts";
export type { RewardLatency } from "./tracking/report/reward-figures.ts";
export { runFoldersIn, runFoldersOf, runInputsIn } from "./tracking/report/run-folders.ts";
export type { Named } from "./tracking/report/run-figures.ts";
export { FollowedRun } from "./tracking/report/shown-run.ts";
export type { RunAbout, RunWarning, ShownRun, Validation } from "./tracking/report/shown-run.ts";
export type { Curve } from "./tracking/report/whole-curves.ts";
export type { PhaseSpan, PhaseTrack, StepPhases } from "./tracking/report/step-phases.ts";
