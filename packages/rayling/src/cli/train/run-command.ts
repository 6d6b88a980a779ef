/**
 * `rayling run`: runs a script under the current Node, with nodes for its `init`. It passes exit
 * code and signals on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { resolve } from "node:path";
import { parseAddress } from "@rayling/cluster";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";

export interface RunOptions {
  readonly script: string;
  readonly args: readonly string[];
  /** Addresses of agents. */
  readonly nodes: readonly string[];
  /** A folder with certificates. */
  readonly tls?: string;
  /** The URL of a Ray cluster's dashboard, or "auto". */
  readonly onRay?: string;
  /** The code for the nodes: a folder, or true for the files that the script's modules reach. */
  readonly workingDir?: string | true;
}

/**
 * A terminal sends these signals to all processes in its foreground, this one and the script alike.
 */
const ofTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
const passedOn: readonly NodeJS.Signals[] = [...ofTerminal, "SIGTERM", "SIGHUP", "SIGUSR2"];

export async function runScript(options: RunOptions): Promise<void> {
  const { script, args, nodes, tls, workingDir, onRay } = options;
  if (onRay !== undefined && nodes.length > 0) {
    throw new CliError(2, "--on-ray does not go with --nodes: the cluster has its own machines");
  }
  for (const address of nodes) checkAddress(address);
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    stdio: "inherit",
    env: {
      ...process.env,
      ...(nodes.length === 0 ? {} : { RAYLING_NODES: nodes.join(",") }),
      ...(onRay === undefined ? {} : { RAYLING_ON_RAY: onRay }),
      ...(tls === undefined ? {} : { RAYLING_TLS: resolve(tls) }),
      ...(workingDir === undefined ? {} : { RAYLING_WORKING_DIR: placeOf(workingDir) }),
    },
  });
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const listeners = passedOn.map((signal) => {
    const pass = (): void => {
      if (!hasTerminal || !ofTerminal.includes(signal)) child.kill(signal);
    };
    process.on(signal, pass);
    return [signal, pass] as const;
  });
  try {
    const { code, signal } = await endOf(child);
    // A shell's exit code, if this process cannot end by the signal.
    process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
    if (signal === null) return;
    for (const [name, pass] of listeners) process.off(name, pass);
    process.kill(process.pid, signal);
  } catch (error) {
    throw new CliError(1, `${script} cannot be started: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    for (const [name, pass] of listeners) process.off(name, pass);
  }
}

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Rejects where the process cannot be started. */
async function endOf(child: ChildProcess): Promise<End> {
  const { promise, resolve: end, reject } = Promise.withResolvers<End>();
  child.once("error", reject);
  child.once("exit", (code, signal) => end({ code, signal }));
  return promise;
}

function placeOf(workingDir: string | true): string {
  return workingDir === true ? "true" : resolve(workingDir);
}

/** The script would report it, too, but with a stack. */
function checkAddress(address: string): void {
  try {
    parseAddress(address);
  } catch (error) {
    throw new CliError(2, `--nodes: ${messageOf(error)}`, { cause: error });
  }
}
