/** Whole commands that go on from a training: the same command, with other keys. Pure. */
import type { TrainerConfig } from "@rayling/trainer/config";
import { whatNext } from "../../output/launcher.ts";
import { shortPath } from "../../output/short-path.ts";
import type { TrainingEnd } from "./training-end.ts";
import { verdictsOf } from "./verdicts.ts";

type Next = readonly [args: readonly string[], what: string];

/**
 * Returns no line where nothing can be gone on with.
 *
 * @param args arguments of the command that trained
 */
export function nextCommands(
  end: TrainingEnd,
  config: TrainerConfig,
  args: readonly string[],
): string[] {
  const commands = [
    ...lowerRate(end, config, args),
    ...pageCommands(end, config),
    ...moreSteps(end, config, args),
  ];
  return commands.length === 0 ? [] : whatNext(commands);
}

function lowerRate(end: TrainingEnd, config: TrainerConfig, args: readonly string[]): Next[] {
  const { lr } = config.actorRolloutRef.actor.optim;
  if (lr === 0 || !verdictsOf(end).some(({ isWorse }) => isWorse)) return [];
  const lower = Number((lr / 3).toPrecision(1));
  const keys = { "actor_rollout_ref.actor.optim.lr": String(lower), ...newFolders(end, config) };
  return [
    [changed(args, keys), `train again with a lower lr than ${lr}: it may keep what was known`],
  ];
}

/** Another run leaves the files and checkpoints of this one alone. */
function newFolders(
  { checkpoints }: TrainingEnd,
  { rayling }: TrainerConfig,
): Readonly<Record<string, string>> {
  const { directory } = rayling;
  return {
    ...(directory === null ? {} : { "rayling.directory": quoted(`${directory}-next`) }),
    ...(checkpoints === null
      ? {}
      : { "trainer.default_local_dir": quoted(`${shortPath(checkpoints)}-next`) }),
  };
}

function pageCommands({ directory }: TrainingEnd, { trainer }: TrainerConfig): Next[] {
  if (!hasFiles(trainer.logger)) return [];
  const made = trainer.logger.includes("report") ? "make its page again" : "make its page";
  return [[["report", shortPath(directory)], `${made}; further folders are compared on it`]];
}

/** Whether a logger keeps what a page shows; the two that read files bring the one that does. */
export function hasFiles(loggers: readonly string[]): boolean {
  return ["file", "report", "trace"].some((name) => loggers.includes(name));
}

function moreSteps(
  { steps, checkpoints }: TrainingEnd,
  { trainer }: TrainerConfig,
  args: readonly string[],
): Next[] {
  if (steps === 0 || checkpoints === null) return [];
  const more = {
    "trainer.total_training_steps": String(2 * steps),
    // They would end it before.
    ...(trainer.totalEpochs === null ? {} : { "trainer.total_epochs": "null" }),
  };
  return [
    [
      changed(args, { "trainer.resume_mode": "auto", ...more }),
      `go on from its last checkpoint, for ${steps} more steps`,
    ],
  ];
}

/** Returns the arguments with these values in place of those that they give to the same keys. */
function changed(args: readonly string[], values: Readonly<Record<string, string>>): string[] {
  const others = args.filter((arg) => {
    const [, key = ""] = /^\+{0,2}([\w.]+)=/.exec(arg) ?? [];
    return !Object.hasOwn(values, key);
  });
  return [...others, ...Object.entries(values).map(([key, value]) => `${key}=${value}`)];
}

/** Returns a value as Hydra reads it. */
function quoted(value: string): string {
  return /^[\w./~-]+$/.test(value) ? value : `'${value.replaceAll("'", String.raw`\'`)}'`;
}
