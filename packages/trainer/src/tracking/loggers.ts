/** The loggers that have a name, by it. */

import { TrackingError } from "../errors.ts";
import { ConsoleLogger } from "./console/console-logger.ts";
import { FileLogger } from "./files/file-logger.ts";
import { PrometheusLogger } from "./prometheus-logger.ts";
import { TensorboardLogger } from "./tensorboard/tensorboard-logger.ts";
import type { TrackingLogger } from "./tracking-logger.ts";

const makers = {
  console: () => new ConsoleLogger(),
  file: () => new FileLogger(),
  tensorboard: () => new TensorboardLogger(),
  prometheus: () => new PrometheusLogger(),
} as const satisfies Readonly<Record<string, () => TrackingLogger>>;

/** verl's names where it has them. */
export type LoggerName = keyof typeof makers;

export const loggerNames: readonly LoggerName[] = Object.keys(makers) as LoggerName[];

/** One of each. Throws TrackingError for a name that is none. */
export function loggersOf(names: readonly string[]): readonly TrackingLogger[] {
  const wanted = new Set(names);
  for (const name of wanted) {
    if (Object.hasOwn(makers, name)) continue;
    const problem = `there is no logger of this name; there are ${loggerNames.join(", ")}`;
    throw new TrackingError("TRACKING_OPEN", name, problem);
  }
  return loggerNames.filter((name) => wanted.has(name)).map((name) => makers[name]());
}
