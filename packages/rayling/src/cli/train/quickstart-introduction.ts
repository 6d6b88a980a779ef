/** The first lines of `rayling quickstart`, which precede its modules: loading takes a while. */
import type { WriteStream } from "node:tty";
import type { ScheduleName } from "@rayling/trainer";
import type { DashboardFlag } from "../dashboard-flag.ts";
import type { FormatFlag } from "../output/formats.ts";
import { span } from "../output/numbers.ts";
import { plain } from "../output/output.ts";

export interface QuickstartFlags extends DashboardFlag, FormatFlag {
  /** Undefined: as many as fit the time. */
  readonly steps?: number;
  readonly seed: number;
  readonly schedule?: readonly ScheduleName[];
  readonly latency?: number;
  readonly warmSteps: number;
  /** Undefined: a new folder. */
  readonly out?: string;
  /** Whether the console prints all metrics of each step. */
  readonly verbose?: boolean;
}

export const standardSchedules: readonly ScheduleName[] = ["sync", "one-step-off-policy"];

/** Seconds that a quickstart takes at most on two free cores. */
const promisedSeconds = 90;

export function introduce(
  { steps, schedule = standardSchedules }: QuickstartFlags,
  stream: WriteStream,
): void {
  const time =
    steps === undefined
      ? `On two free cores it takes less than ${promisedSeconds} s`
      : `${steps} steps under each`;
  const lines = [
    "A tiny transformer learns to add two numbers: 37+85 is 122. It begins with",
    "a supervised warm-up until it knows a third, and goes on by GRPO with a slow",
    `judge, under ${schedule.join(" and ")}, from the same start.`,
    `${time}; Ctrl-C stops it.`,
  ];
  stream.write(lines.map((line) => `${plain(line)}\n`).join(""));
}

/**
 * Returns a line for a machine that cannot keep what the first lines promise. There is no line
 * where the flags ask for more steps, a slower judge or more schedules.
 *
 * @param seconds expected for the whole quickstart, as this machine was measured
 */
export function slowness(
  { steps, latency, schedule = standardSchedules }: QuickstartFlags,
  seconds: number,
): string | undefined {
  const asksForMore = schedule.length > standardSchedules.length;
  if (steps !== undefined || latency !== undefined || asksForMore) return undefined;
  if (seconds <= promisedSeconds) return undefined;
  return `This machine is busy or slow, so about ${span(1000 * seconds)} in all in place of ${promisedSeconds} s.`;
}
