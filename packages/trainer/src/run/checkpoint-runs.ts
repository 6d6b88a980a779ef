/**
 * Which run saved the checkpoints of a folder: `rayling_runs.json` beside them has, for each step,
 * the folder of the run. A run that resumes goes on in the files of that one, and of no other.
 *
 * Checkpoints of earlier releases have no such note: then the newest run counts whose settings name
 * their folder.
 */

import { createReadStream } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { isRecord } from "@rayling/reward-manager-registry/values";
import type { ResumeOptions } from "../checkpoint/checkpoint-folder.ts";
import type { TrackedRun, TrackingLogger, TrainingProgress } from "../tracking/tracking-logger.ts";
import { makeFolder } from "../values/make-folder.ts";
import { replaceFile } from "../values/replace-file.ts";

const NOTE = "rayling_runs.json";
const LATEST = "latest_checkpointed_iteration.txt";

/**
 * Returns the folder of the run that the checkpoint to resume from is of, if it is there, and
 * undefined for a checkpoint of another folder: what goes on from that is a run of its own.
 *
 * @param base folder of the runs with these names
 */
export async function runOfCheckpoint(
  base: string,
  { folder, mode, path }: ResumeOptions,
): Promise<string | undefined> {
  const step = mode === "resume_path" ? stepIn(folder, path) : await latestStep(folder);
  if (step === undefined) return undefined;
  const noted = (await notesIn(folder))[step];
  const run = noted === undefined ? await runWithCheckpointsIn(base, folder) : join(folder, noted);
  // Under other names it is another run.
  if (run === undefined || resolve(dirname(run)) !== resolve(base)) return undefined;
  return (await isFolder(run)) ? run : undefined;
}

/** Notes the run of each checkpoint before it is saved: one that is there has its run. */
export class CheckpointRuns implements TrackingLogger {
  readonly name = "checkpoints";
  readonly #folder: string;
  #run = "";
  #step: number | undefined;

  /** @param folder of the checkpoints */
  constructor(folder: string) {
    this.#folder = folder;
  }

  open({ directory }: TrackedRun): void {
    this.#run = directory;
  }

  async progress({ step, phase }: TrainingProgress): Promise<void> {
    if (phase !== "save_checkpoint" || step === this.#step) return;
    this.#step = step;
    await makeFolder(this.#folder);
    const there = new Set(await stepsIn(this.#folder));
    const notes = Object.entries(await notesIn(this.#folder));
    const kept = Object.fromEntries(notes.filter(([other]) => there.has(Number(other))));
    // Relative, so that both may be moved together.
    const run = relative(resolve(this.#folder), resolve(this.#run));
    const text = JSON.stringify({ ...kept, [step]: run }, null, 1);
    await replaceFile(join(this.#folder, NOTE), (unfinished) => writeFile(unfinished, `${text}\n`));
  }
}

function stepIn(folder: string, path: string | undefined): number | undefined {
  if (path === undefined || resolve(dirname(path)) !== resolve(folder)) return undefined;
  return stepOf(path);
}

async function latestStep(folder: string): Promise<number | undefined> {
  const text = await readFile(join(folder, LATEST), "utf8").catch(() => "");
  if (/^\d+$/.test(text.trim())) return Number(text);
  const steps = await stepsIn(folder);
  return steps.length === 0 ? undefined : Math.max(...steps);
}

async function stepsIn(folder: string): Promise<readonly number[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.flatMap((name) => stepOf(name) ?? []);
}

function stepOf(path: string): number | undefined {
  const [, step] = /(?:^|[\\/])global_step_(\d+)[\\/]*$/.exec(path) ?? [];
  return step === undefined ? undefined : Number(step);
}

/** Notes that cannot be read are none: a run of its own harms nobody. */
async function notesIn(folder: string): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(join(folder, NOTE), "utf8").catch(() => "{}");
  try {
    const notes: unknown = JSON.parse(text);
    const entries = isRecord(notes) ? Object.entries(notes) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return {};
  }
}

async function runWithCheckpointsIn(base: string, folder: string): Promise<string | undefined> {
  const names = await readdir(base).catch((): string[] => []);
  // They are named by when they began.
  for (const name of names
    .filter((one) => one !== "latest")
    .toSorted()
    .toReversed()) {
    const checkpoints = await checkpointsOf(join(base, name));
    if (checkpoints !== undefined && resolve(checkpoints) === resolve(folder))
      return join(base, name);
  }
  return undefined;
}

/** Returns where the settings in the first line of a run's timeline put its checkpoints. */
async function checkpointsOf(run: string): Promise<string | undefined> {
  const input = createReadStream(join(run, "timeline.jsonl"));
  try {
    for await (const line of createInterface({ input })) {
      const start: unknown = JSON.parse(line);
      const config = isRecord(start) && isRecord(start["config"]) ? start["config"] : {};
      const trainer = isRecord(config["trainer"]) ? config["trainer"] : {};
      const checkpoints = trainer["default_local_dir"];
      return typeof checkpoints === "string" ? checkpoints : undefined;
    }
  } catch {
    // No run, or one that kept no timeline.
  } finally {
    input.destroy();
  }
  return undefined;
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}
