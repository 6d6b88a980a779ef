/**
 * How a program of each language is run on this machine: its files, its command, and what stands around it. Found out once: where Python is, and whether the kernel gives namespaces
 * (no network but a loopback that is down, no other processes to see) to whoever asks, as Linux does in most places and containers often do not.
 */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { SandboxUnavailableError } from "../errors.ts";
import { callable, javascriptCaller, javascriptGuard } from "./javascript-runner.ts";
import { pythonRunner } from "./python-runner.ts";

export type ProgramLanguage = "python" | "javascript";

/** What a run needs in its folder, and how it is started there. */
export interface Preparation {
  readonly files: Readonly<Record<string, string>>;
  readonly command: readonly [string, ...string[]];
  /** Memory that the language itself takes of what the limit counts. */
  readonly ownMb: number;
}

export interface PreparationRequest {
  readonly language: ProgramLanguage;
  readonly code: string;
  readonly functionName: string | undefined;
  readonly folder: string;
  readonly memoryLimitMb: number;
}

const namespaces = [
  "unshare",
  "--user",
  "--map-root-user",
  "--net",
  "--pid",
  "--fork",
  "--kill-child=KILL",
  "--mount-proc",
] as const;

/** A shell stays the first process of a namespace: signals, and how they are told, are different for that one. */
const firstProcess = ["sh", "-c", '"$@"; exit $?', "sh"] as const;

const run = promisify(execFile);

export class Runtimes {
  #python: Promise<string> | undefined;
  #hasNamespaces: Promise<boolean> | undefined;

  /** @param wantsNamespaces where the kernel gives them */
  constructor(wantsNamespaces: boolean) {
    if (!wantsNamespaces) this.#hasNamespaces = Promise.resolve(false);
  }

  /** Whether programs run without any network and without seeing other processes, by the kernel. */
  hasNamespaces(): Promise<boolean> {
    this.#hasNamespaces ??= run(namespaces[0], [...namespaces.slice(1), "true"]).then(
      () => true,
      () => false,
    );
    return this.#hasNamespaces;
  }

  /** Rejects with SandboxUnavailableError. */
  async prepare(request: PreparationRequest): Promise<Preparation> {
    const preparation =
      request.language === "python" ? await this.#ofPython(request) : ofJavaScript(request);
    if (!(await this.hasNamespaces())) return preparation;
    return { ...preparation, command: [...namespaces, ...firstProcess, ...preparation.command] };
  }

  async #ofPython({ code, functionName }: PreparationRequest): Promise<Preparation> {
    this.#python ??= findPython().catch((error: unknown) => {
      // It may be there next time.
      this.#python = undefined;
      throw error;
    });
    const flags = ["-I", "-B", "-X", "utf8"];
    return {
      files: { "program.py": code, "runner.py": pythonRunner },
      command: [
        await this.#python,
        ...flags,
        "runner.py",
        ...(functionName === undefined ? [] : [functionName]),
      ],
      ownMb: 32,
    };
  }
}

/** Itself, not what stands for it on the path: that may be a script that takes its time. */
async function findPython(): Promise<string> {
  try {
    const { stdout } = await run("python3", ["-I", "-c", "import sys; print(sys.executable)"]);
    return stdout.trim();
  } catch (cause) {
    throw new SandboxUnavailableError("python", "there is no python3 that runs", { cause });
  }
}

function ofJavaScript(request: PreparationRequest): Preparation {
  const { code, functionName, folder, memoryLimitMb } = request;
  const main = functionName === undefined ? "program.js" : "caller.mjs";
  return {
    files: {
      "guard.cjs": javascriptGuard,
      "caller.mjs": javascriptCaller,
      "program.js": functionName === undefined ? code : code + callable(functionName),
    },
    command: [
      process.execPath,
      "--permission",
      `--allow-fs-read=${folder}`,
      `--allow-fs-write=${folder}`,
      "--allow-fs-read=/dev/stdin",
      "--no-warnings",
      `--max-old-space-size=${memoryLimitMb}`,
      "--require",
      "./guard.cjs",
      main,
    ],
    // Measured with Node 24: below 600 MB it does not start.
    ownMb: 640,
  };
}
