/**
 * The ways to keep a program apart, from the strongest to the weakest, behind one contract. A way says where a program finds its files, what its own process asks the kernel for, and
 * which command stands around it. It starts nothing: confined-child.ts does.
 */

import type { KernelConfinement } from "../language/python-confinement.ts";
import type { ViewEntry } from "./file-view.ts";

/**
 * What keeps programs apart.
 *
 * - `bubblewrap`: `bwrap` with namespaces of the kernel: a root of its own that can only be read, no network, no other processes.
 * - `namespaces`: the same by `unshare` and `mount` of util-linux.
 * - `landlock`: no namespaces; the kernel refuses files, new processes, sockets and signals. Needs Linux 5.13 and Python.
 * - `process`: limits of the shell, and what the languages deny by themselves.
 */
export type SandboxIsolation = "bubblewrap" | "namespaces" | "landlock" | "process";

/** Strongest first. */
export const isolations = ["bubblewrap", "namespaces", "landlock", "process"] as const;

/** Where a program finds its files: paths as it sees them. */
export interface Places {
  /** What is written for the run; only read. */
  readonly code: string;
  /** Its current folder, the only place to write to. */
  readonly scratch: string;
}

export interface Wrapping {
  readonly command: readonly [string, ...string[]];
  /** Files beside the command: paths below the run's folder. */
  readonly files: Readonly<Record<string, string | Buffer>>;
  /** Folders that must be there for it, and links with what they lead to: paths below the run's folder. */
  readonly folders?: readonly string[];
  readonly links?: Readonly<Record<string, string>>;
  /** One of `files` that the command finds open as file descriptor 6. */
  readonly filter?: string;
}

export interface WrapRequest {
  readonly command: readonly [string, ...string[]];
  /** Of the run, on this machine. */
  readonly folder: string;
  /** What there is to see of this machine, where a root of its own is put up. */
  readonly view: readonly ViewEntry[];
}

export interface Isolation {
  readonly name: SandboxIsolation;
  /** Whether no process of a run outlives it, whatever it does. */
  readonly endsProcesses: boolean;
  /** @param folder of the run, on this machine: holds `code`, `scratch`, and a folder `root` to put up a root in */
  places(folder: string): Places;
  /** What the program's own process is to ask the kernel for. */
  confinement(places: Places, view: readonly ViewEntry[]): KernelConfinement;
  wrap(request: WrapRequest): Wrapping;
}

/** Of a scratch folder that is memory, and of shared memory in it. */
export const scratchBytes: number = 64 * 2 ** 20;
/** Processes and threads, where they are counted for each run. */
export const mostProcesses = 256;
/** Where a program finds its files when it has a root of its own. */
export const ownPlaces: Places = { code: "/program", scratch: "/scratch" };
