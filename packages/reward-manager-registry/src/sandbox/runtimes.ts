/**
 * The way to run a program of each language on this machine: its files, its command, the files that
 * it reads. The location of Python, and of its files, is looked up once, and where it has gone.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxResourceError, SandboxUnavailableError } from "../errors.ts";
import { uncoveredDescriptors } from "./confined-child.ts";
import { fileView } from "./isolation/file-view.ts";
import type { ViewEntry } from "./isolation/file-view.ts";
import type { Isolation, Places } from "./isolation/isolation.ts";
import { isPassing } from "./passing-error.ts";
import { callable, javascriptCaller, javascriptGuard } from "./language/javascript-runner.ts";
import { pythonLauncher } from "./language/python-confinement.ts";
import { pythonJudge } from "./language/python-judge.ts";
import { pythonRunner, pythonServer } from "./language/python-runner.ts";

/** Languages of programs that can be run. */
export type ProgramLanguage = "python" | "javascript";

/**
 * A process's use of the code: run it as a whole, or one function of it; run it and serve the
 * judge; judge, when the code is lines of a test; or fork processes that run what comes later.
 */
export type ProgramPart =
  | { readonly kind: "script" | "server" | "judge" }
  | { readonly kind: "function"; readonly name: string }
  | ForksPart;

export interface ForksPart {
  readonly kind: "forks";
  readonly maxOutputBytes: number;
  readonly cpuSeconds: number;
  readonly memoryLimitMb: number;
  /** Whether numpy is loaded for all programs. */
  readonly hasNumpy: boolean;
}

/** The files of a run's code folder, and the command that starts it. */
export interface Preparation {
  readonly files: Readonly<Record<string, string>>;
  readonly command: readonly [string, ...string[]];
  readonly view: readonly ViewEntry[];
  /** Whether the process sets the filter of system calls itself. */
  readonly isFiltered: boolean;
  /** The memory that the language itself takes within the limit. */
  readonly ownMb: number;
  /** The address space that it takes beyond that; undefined: it cannot be limited. */
  readonly mappedMb: number | undefined;
}

export interface PreparationRequest {
  readonly language: ProgramLanguage;
  readonly code: string;
  readonly part: ProgramPart;
  readonly places: Places;
  readonly isolation: Isolation;
  readonly memoryLimitMb: number;
}

interface Python {
  readonly executable: string;
  readonly readable: readonly string[];
}

/** The memory that Python itself takes. */
const pythonMb = 32;

/** `-B`: Python writes no bytecode, so its own modules stay unchanged. */
const pythonFlags = ["-I", "-B", "-X", "utf8"] as const;

/**
 * Python's own executable, because the one on the path may be a slow script; and the places of its
 * modules.
 */
const aboutPython = `
import json, os, sys
print(json.dumps([sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]))
`;

const pythonTexts: Readonly<Record<ProgramPart["kind"], string>> = {
  script: pythonRunner,
  function: pythonRunner,
  server: pythonServer,
  judge: pythonJudge,
  forks: pythonRunner,
};

export class Runtimes {
  #python: Promise<Python> | undefined;
  #hasFound = false;
  readonly #views = new Map<string, Promise<readonly ViewEntry[]>>();

  async hasPython(): Promise<boolean> {
    return (await this.#pythonIfThere()) !== undefined;
  }

  /** Rejects with SandboxUnavailableError. */
  async prepare(request: PreparationRequest): Promise<Preparation> {
    return request.language === "python"
      ? this.#preparePython(request)
      : this.#prepareJavaScript(request);
  }

  async #preparePython(request: PreparationRequest): Promise<Preparation> {
    const { code, part, places, isolation } = request;
    const { executable, readable } = await this.#findPython();
    const view = await this.#view(readable);
    const confinement = isolation.confinement(places, view, "python");
    const runner = join(places.code, "runner.py");
    return {
      files: {
        "program.py": code,
        "runner.py": pythonTexts[part.kind],
        "confinement.json": JSON.stringify(confinement),
      },
      command: [executable, ...pythonFlags, runner, ...argumentsOf(part)],
      view,
      isFiltered: confinement.filter !== undefined,
      ownMb: pythonMb,
      // Measured with Python 3.11 and numpy: 50 MB.
      mappedMb: 128,
    };
  }

  async #prepareJavaScript(request: PreparationRequest): Promise<Preparation> {
    const { code, part, places, isolation, memoryLimitMb } = request;
    const { main, program } = javascriptParts(code, part);
    const { filter, landlock } = isolation.confinement(places, [], "javascript");
    const python =
      filter === undefined && landlock === undefined ? undefined : await this.#pythonIfThere();
    if (python === undefined && landlock !== undefined) {
      throw new SandboxUnavailableError("javascript", "Landlock needs a python3 that sets it up");
    }
    // The launcher is confined before it starts Node, so it may read the files of both.
    const view = await this.#view([process.execPath, ...(python?.readable ?? [])]);
    const inCode = (name: string): string => join(places.code, name);
    const launching = ["-S", ...pythonFlags, inCode("launcher.py"), inCode("confinement.json")];
    const node: [string, ...string[]] = [
      process.execPath,
      "--permission",
      `--allow-fs-read=${places.code}`,
      `--allow-fs-read=${places.scratch}`,
      `--allow-fs-write=${places.scratch}`,
      "--allow-fs-read=/dev/stdin",
      "--no-warnings",
      `--max-old-space-size=${memoryLimitMb}`,
      "--require",
      inCode("guard.cjs"),
      inCode(main),
    ];
    return {
      files: {
        "guard.cjs": javascriptGuard(inheritedByNode()),
        "caller.mjs": javascriptCaller,
        "program.js": program,
        "launcher.py": pythonLauncher,
        "confinement.json": JSON.stringify(isolation.confinement(places, view, "javascript")),
      },
      command: python === undefined ? node : [python.executable, ...launching, ...node],
      view,
      isFiltered: filter !== undefined && python !== undefined,
      // Measured with Node 24: below 600 MB it does not start.
      ownMb: 640,
      mappedMb: undefined,
    };
  }

  #view(readable: readonly string[]): Promise<readonly ViewEntry[]> {
    const key = readable.join("\n");
    const view = this.#views.get(key) ?? fileView(readable);
    this.#views.set(key, view);
    return view;
  }

  /**
   * Resolves with undefined on a machine that has never had one. It sets walls up, so one that was
   * there and cannot be found now rejects: nothing runs with fewer of them than the first program.
   */
  async #pythonIfThere(): Promise<Python | undefined> {
    try {
      return await this.#findPython();
    } catch (error) {
      if (this.#hasFound || !(error instanceof SandboxUnavailableError)) throw error;
      return undefined;
    }
  }

  /** Looks again where the last attempt failed, or where what it found has gone. */
  #findPython(): Promise<Python> {
    const again = (): Promise<Python> => {
      this.#views.clear();
      return findPython();
    };
    const isThere = ({ readable }: Python): boolean => readable.every((path) => existsSync(path));
    const found =
      this.#python?.then((known) => (isThere(known) ? known : again()), again) ?? findPython();
    this.#python = found.then((python) => {
      this.#hasFound = true;
      return python;
    });
    return this.#python;
  }
}

async function findPython(): Promise<Python> {
  try {
    const { stdout } = await promisify(execFile)("python3", ["-I", "-c", aboutPython]);
    const said: unknown = JSON.parse(stdout);
    const [executable = "", ...paths] = Array.isArray(said) ? said.map(String) : [];
    // Python also names places of modules that it could have, as a zip of them.
    const readable = paths.filter((path) => path !== "" && existsSync(path));
    return { executable, readable: [executable, ...readable] };
  } catch (cause) {
    const problem = "there is no python3 that runs";
    if (isPassing(cause)) throw new SandboxResourceError(problem, { cause });
    throw new SandboxUnavailableError("python", problem, { cause });
  }
}

/** Returns the descriptors that Node is to close before the program. */
function inheritedByNode(): readonly number[] {
  try {
    return uncoveredDescriptors();
  } catch (cause) {
    const problem = "the descriptors of this process cannot be listed";
    if (isPassing(cause)) throw new SandboxResourceError(problem, { cause });
    throw new SandboxUnavailableError("javascript", problem, { cause });
  }
}

function argumentsOf(part: ProgramPart): string[] {
  switch (part.kind) {
    case "function":
      return ["function", part.name];
    case "forks":
      return ["serve", ...numbersOf(part).map((one) => BigInt(one).toString())];
    default:
      return [part.kind];
  }
}

/** Python reads no other numbers than whole ones. */
function numbersOf(part: ForksPart): number[] {
  const { maxOutputBytes, cpuSeconds, memoryLimitMb, hasNumpy } = part;
  const bytes = Math.min(Math.floor(maxOutputBytes), 2 ** 52);
  return [bytes, cpuSeconds, (memoryLimitMb + pythonMb) * 2 ** 20, Number(hasNumpy)];
}

function javascriptParts(code: string, part: ProgramPart): { main: string; program: string } {
  switch (part.kind) {
    case "script":
      return { main: "program.js", program: code };
    case "function":
      return { main: "caller.mjs", program: code + callable(part.name) };
    default:
      throw new SandboxUnavailableError("javascript", "only Python is judged, or forked");
  }
}
