/** Runs a program in a fresh process that prints one line of JSON. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const packages = join(import.meta.dirname, "../../packages");

/** Uses core as it is published, which `buildCore` makes. */
export async function fresh(program: URL, ...args: readonly string[]): Promise<unknown> {
  return await printedBy("--conditions=built", program.pathname, ...args);
}

/** Uses all packages as they lie in the workspace. */
export async function freshFromSource(program: URL, ...args: readonly string[]): Promise<unknown> {
  return await printedBy(program.pathname, ...args);
}

/** Uses packages as this process does, with more variables in the environment. */
export async function freshWith(
  env: Readonly<Record<string, string>>,
  program: URL,
  ...args: readonly string[]
): Promise<unknown> {
  return await printed([...process.execArgv, program.pathname, ...args], {
    ...process.env,
    ...env,
  });
}

async function printedBy(...command: readonly string[]): Promise<unknown> {
  return await printed(command, process.env);
}

async function printed(command: readonly string[], env: NodeJS.ProcessEnv): Promise<unknown> {
  const { stdout } = await run(process.execPath, command, { env, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout);
}

export async function buildCore(): Promise<void> {
  await buildPackages("core");
}

/** @param names of their folders, in the order in which they are built */
export async function buildPackages(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await run(process.execPath, [join(packages, "build.ts"), join(packages, name)]);
  }
}
