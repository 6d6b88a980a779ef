/** The loggers that have a name, by it. */

import { TrackingError } from "../errors.ts";
import { ConsoleLogger } from "./console/console-logger.ts";
import { FileLogger } from "./files/file-logger.ts";
import { PrometheusLogger } from "./prometheus-logger.ts";
import { ReportLogger } from "./report/report-logger.ts";
import { TensorboardLogger } from "./tensorboard/tensorboard-logger.ts";
import { TraceLogger } from "./trace/trace-logger.ts";
import type { TrackingLogger } from "./tracking-logger.ts";

/** verl's names where it has them. */
export type LoggerName = "console" | "file" | "tensorboard" | "prometheus" | "report" | "trace";

const makers: Readonly<Record<LoggerName, () => TrackingLogger>> = {
  console: () => new ConsoleLogger(),
  file: () => new FileLogger(),
  tensorboard: () => new TensorboardLogger(),
  prometheus: () => new PrometheusLogger(),
  report: () => new ReportLogger(),
  trace: () => new TraceLogger(),
};

/** Names of all loggers that come with the package. */
export const loggerNames: readonly LoggerName[] = Object.keys(makers) as LoggerName[];

/** Loggers that read the files of a run when it ends, after the logger that writes them. */
const ofFiles: readonly string[] = ["report", "trace"] satisfies readonly LoggerName[];

/**
 * Returns one logger of each name, with the file logger where another one needs it. Throws
 * TrackingError for an unknown name.
 */
export function loggersOf(names: readonly string[]): readonly TrackingLogger[] {
  const wanted = new Set(names);
  for (const name of wanted) {
    if (Object.hasOwn(makers, name)) continue;
    const problem = `there is no logger of this name; there are ${loggerNames.join(", ")}`;
    throw new TrackingError("TRACKING_OPEN", name, problem);
  }
  if (ofFiles.some((name) => wanted.has(name))) wanted.add("file");
  return loggerNames.filter((name) => wanted.has(name)).map((name) => makers[name]());
}
