/**
 * The request of a Python process when it connects: the options of the reward loop, from a file and
 * by keywords.
 */

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { z } from "zod";
import { messageOf } from "@rayling/reward-manager-registry/values";

const record: z.ZodType<Readonly<Record<string, unknown>>> = z.record(z.string(), z.unknown());

export interface Hello {
  /** Options of the loop; they win over those of the file. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Path of a YAML file with options of the loop. */
  readonly config?: string | undefined;
  /** All columns of the extra info. */
  readonly columns?: readonly string[] | undefined;
  /** Whether a sample without a score ends its batch, and so needs no columns. */
  readonly raises: boolean;
}

const helloSchema: z.ZodType<Hello> = z.strictObject({
  options: record,
  config: z.string().optional(),
  columns: z.array(z.string()).optional(),
  raises: z.boolean(),
});

/** verl has no limit of its own for functions that wait. */
const concurrency = 1024;

/**
 * Returns threads for one function: one worker costs less than several for functions that take no
 * time, and each processor has an executor for those that do.
 */
function threads(): Pick<RewardLoopOptions, "workers" | "executors"> {
  return { workers: 1, executors: Math.min(Math.max(availableParallelism(), 2), 16) };
}

/** Options with which the loop itself says how many threads it has. */
const sized = ["workers", "executors", "rewards", "cascade"] as const;

/** Throws ZodError for what is no hello. */
export function readHello(message: unknown): Hello {
  return helloSchema.parse(message);
}

/**
 * Returns the options for RewardLoopManager.create, which checks them. Relative paths start at the
 * folder of the file, where there is one. Rejects with TypeError, which names the file, where that
 * cannot be read.
 */
export async function loopOptionsOf({ options, config }: Hello): Promise<RewardLoopOptions> {
  const given: RewardLoopOptions = { ...(await readConfig(config)), ...options };
  const isSized = sized.some((name) => given[name] !== undefined);
  return { concurrency, ...(isSized ? {} : threads()), ...given };
}

async function readConfig(path: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (path === undefined) return {};
  const content = record.safeParse(await parsed(path));
  if (content.success) return { baseDirectory: dirname(resolve(path)), ...content.data };
  throw new TypeError(`${path} must hold options of a reward loop by their names`);
}

async function parsed(path: string): Promise<unknown> {
  const { yamlValue } = await import("@rayling/config-tree");
  try {
    return yamlValue(await readFile(path, "utf8"));
  } catch (cause) {
    const reason = messageOf(cause);
    throw new TypeError(`${path} cannot be read as YAML: ${reason}`, { cause });
  }
}
