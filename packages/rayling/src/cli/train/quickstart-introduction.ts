/** The first lines of `rayling quickstart`, which precede its modules: loading takes a while. */
import type { WriteStream } from "node:tty";
import type { DashboardFlag } from "../dashboard-flag.ts";
import type { FormatFlag } from "../output/formats.ts";
import { plain } from "../output/output.ts";

export interface QuickstartFlags extends DashboardFlag, FormatFlag {
  /** Undefined: as many as fit the time. */
  readonly steps?: number;
  readonly seed: number;
  readonly schedule?: readonly string[];
  readonly latency?: number;
  readonly warmSteps: number;
  /** Undefined: a new folder. */
  readonly out?: string;
  /** Whether the console prints all metrics of each step. */
  readonly verbose?: boolean;
}

export const standardSchedules: readonly string[] = ["sync", "one-step-off-policy"];

export function introduce(
  { steps, schedule = standardSchedules }: QuickstartFlags,
  stream: WriteStream,
): void {
  const time =
    steps === undefined ? "On two free cores it takes less than 90 s" : `${steps} steps under each`;
  const lines = [
    "A tiny transformer learns to add two numbers: 37+85 is 122. It begins with",
    "a supervised warm-up until it knows a third, and goes on by GRPO with a slow",
    `judge, under ${schedule.join(" and ")}, from the same start.`,
    `${time}; Ctrl-C stops it.`,
  ];
  stream.write(lines.map((line) => `${plain(line)}\n`).join(""));
}
