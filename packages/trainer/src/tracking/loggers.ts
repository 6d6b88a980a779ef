/** The loggers that have a name, by it. */

import { loggerNames, otherLoggers } from "../config/verl/logger-names.ts";
import { TrackingError } from "../errors.ts";
import { ConsoleLogger } from "./console/console-logger.ts";
import { FileLogger } from "./files/file-logger.ts";
import { MlflowLogger } from "./mlflow/mlflow-logger.ts";
import { PrometheusLogger } from "./prometheus-logger.ts";
import { ReportLogger } from "./report/report-logger.ts";
import { TensorboardLogger } from "./tensorboard/tensorboard-logger.ts";
import { TraceLogger } from "./trace/trace-logger.ts";
import { TrackioLogger } from "./trackio/trackio-logger.ts";
import type { TrackingLogger } from "./tracking-logger.ts";
import { WandbLogger } from "./wandb/wandb-logger.ts";

/** Name of a logger that comes with the package; verl's name where verl has one. */
export type LoggerName = (typeof loggerNames)[number];

/** Settings of loggers. */
export interface LoggerSettings {
  /** Whether the console prints verl's line of all metrics for each step. Default false. */
  readonly verbose?: boolean | undefined;
}

const makers: Readonly<Record<LoggerName, (settings: LoggerSettings) => TrackingLogger>> = {
  console: ({ verbose = false }) => new ConsoleLogger({ verbose }),
  file: () => new FileLogger(),
  tensorboard: () => new TensorboardLogger(),
  wandb: () => new WandbLogger(),
  mlflow: () => new MlflowLogger(),
  trackio: () => new TrackioLogger(),
  prometheus: () => new PrometheusLogger(),
  report: () => new ReportLogger(),
  trace: () => new TraceLogger(),
};

/** Loggers that read the files of a run when it ends, after the logger that writes them. */
const ofFiles: readonly string[] = ["report", "trace"] satisfies readonly LoggerName[];

/**
 * Returns one logger of each name, with the file logger where another one needs it. Throws
 * TrackingError for an unknown name.
 */
export function loggersOf(
  names: readonly string[],
  settings: LoggerSettings = {},
): readonly TrackingLogger[] {
  const wanted = new Set(names);
  for (const name of wanted) {
    if (Object.hasOwn(makers, name)) continue;
    const isVerls = otherLoggers.some((other) => other === name);
    const problem = isVerls ? "verl's logger is not here" : "there is no logger of this name";
    const here = loggerNames.join(", ");
    throw new TrackingError("TRACKING_OPEN", name, `${problem}; there are ${here}`);
  }
  if (ofFiles.some((name) => wanted.has(name))) wanted.add("file");
  return loggerNames.filter((name) => wanted.has(name)).map((name) => makers[name](settings));
}
