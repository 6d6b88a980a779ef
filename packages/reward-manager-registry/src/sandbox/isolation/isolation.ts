/**
 * The isolations of programs, from the strongest to the weakest, behind one contract. An isolation
 * says where a program finds its files, what its own process requests from the kernel, and which
 * command wraps it. It starts nothing: confined-child.ts does.
 */

import type { KernelConfinement } from "../language/python-confinement.ts";
import type { ViewEntry } from "./file-view.ts";

/**
 * The isolation of programs.
 *
 * - `bubblewrap`: `bwrap` with namespaces of the kernel: a read-only root of its own, no network,
 *   no other processes.
 * - `namespaces`: namespaces through `unshare` and `mount` of util-linux.
 * - `landlock`: no namespaces; the kernel refuses files, new processes, sockets and signals. Needs
 *   Linux 5.13 and Python.
 * - `process`: limits of the shell, and what the languages themselves refuse.
 */
export type SandboxIsolation = "bubblewrap" | "namespaces" | "landlock" | "process";

/** The isolations, the strongest first. */
export const isolations = ["bubblewrap", "namespaces", "landlock", "process"] as const;

/** The places of a program's files: paths as it sees them. */
export interface Places {
  /** Files of the run, read-only. */
  readonly code: string;
  /** Its working directory, the only writable place. */
  readonly scratch: string;
}

export interface Wrapping {
  readonly command: readonly [string, ...string[]];
  /** Files beside the command: paths below the run's folder. */
  readonly files: Readonly<Record<string, string | Buffer>>;
  /** Folders that must exist for it, and links with their targets: paths below the run's folder. */
  readonly folders?: readonly string[];
  readonly links?: Readonly<Record<string, string>>;
  /** One of `files`, which the command finds open as file descriptor 6. */
  readonly filter?: string;
}

export interface WrapRequest {
  readonly command: readonly [string, ...string[]];
  /** The run's folder on this machine. */
  readonly folder: string;
  /** The visible files of this machine, for a root of its own. */
  readonly view: readonly ViewEntry[];
  /** Whether the program's own process sets the filter of system calls. */
  readonly isFiltered: boolean;
}

export interface Isolation {
  readonly name: SandboxIsolation;
  /** Whether no process of a run outlives it, whatever it does. */
  readonly endsProcesses: boolean;
  /**
   * @param folder the run's folder on this machine: it contains `code`, `scratch`, and a folder
   * `root` to mount a root on
   */
  places(folder: string): Places;
  /** Returns what the program's own process requests from the kernel. */
  confinement(
    places: Places,
    view: readonly ViewEntry[],
    language: "python" | "javascript",
  ): KernelConfinement;
  wrap(request: WrapRequest): Wrapping;
}

/** The size of a scratch folder in memory, and of its shared memory. */
export const scratchBytes: number = 64 * 2 ** 20;
/** The most processes and threads, where they are counted for each run. */
export const mostProcesses = 256;
/** The places of a program with a root of its own. */
export const ownPlaces: Places = { code: "/program", scratch: "/scratch" };
