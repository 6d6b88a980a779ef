/**
 * The command lines of benchmarks: what they may say, and one clear line, with 2 as the exit code,
 * for what they may not.
 */
import { parseArgs, type ParseArgsOptionDescriptor } from "node:util";

export class FlagError extends Error {
  readonly code = "BAD_FLAG";
}

/** The kinds of flags: with a text behind them, or with nothing. */
export const takes = {
  text: { type: "string" },
  nothing: { type: "boolean" },
} as const satisfies Readonly<Record<string, ParseArgsOptionDescriptor>>;

export type FlagKinds = Readonly<Record<string, (typeof takes)[keyof typeof takes]>>;

export type FlagValues<K extends FlagKinds> = ReturnType<
  typeof parseArgs<{ args: string[]; options: K }>
>["values"];

/** @throws FlagError for a flag that there is not, or that lacks its value */
export function readFlags<const K extends FlagKinds>(
  args: readonly string[],
  kinds: K,
): FlagValues<K> {
  try {
    return parseArgs({ args: [...args], options: kinds }).values;
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    throw new FlagError(message.split("\n")[0] ?? "bad flag", { cause: error });
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
