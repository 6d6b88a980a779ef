/** The command lines of benchmarks: what they may say, and one clear line, with 2 as the exit code, for what they may not. */
import { parseArgs } from "node:util";

export class FlagError extends Error {
  readonly code = "BAD_FLAG";
}

/** What each flag takes: a text, or nothing. */
export type FlagKinds = Readonly<Record<string, "string" | "boolean">>;

export type FlagValues<K extends FlagKinds> = {
  readonly [Name in keyof K]?: K[Name] extends "boolean" ? boolean : string;
};

/** @throws FlagError for a flag that there is not, or that lacks its value */
export function readFlags<const K extends FlagKinds>(
  args: readonly string[],
  kinds: K,
): FlagValues<K> {
  const options = Object.fromEntries(Object.entries(kinds).map(([name, type]) => [name, { type }]));
  try {
    return parseArgs({ args: [...args], options }).values as FlagValues<K>;
  } catch (error) {
    throw new FlagError((error as Error).message.split("\n")[0] ?? "bad flag", { cause: error });
  }
}

/** @throws FlagError for what is no whole number, or less */
export function whole(flag: string, text: string, least: number = 1): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(value) && value >= least) return value;
  throw new FlagError(`${flag} takes a whole number of at least ${least}, not "${text}"`);
}

/**
 * Runs it with the arguments of this process.
 *
 * @param isTold what else is one line for its user, and no defect
 */
export async function runCommand(
  name: string,
  main: (args: readonly string[]) => Promise<void>,
  isTold: (error: Error) => boolean = () => false,
): Promise<void> {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    const isFlag = error instanceof FlagError;
    if (!(error instanceof Error) || !(isFlag || isTold(error))) throw error;
    console.error(`${name}: ${error.message}${isFlag ? "; see --help" : ""}`);
    process.exitCode = 2;
  }
}
