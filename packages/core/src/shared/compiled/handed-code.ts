/**
 * The package's file, and what is kept of it for threads, as a driver hands them to its threads: in
 * memory that all share. Each thread would read and compare 3 MB, which takes 3 ms.
 */
import { readFileSync } from "node:fs";
import { type Kept, readKept } from "./kept-file.ts";

/** A place for kept code. */
export interface Place {
  readonly path: string;
  /** That of V8's version and flags, where the directory is not Node's. */
  readonly tag?: string;
}

/** The file's bytes, and what is kept of them. */
export interface Found {
  readonly source: Uint8Array;
  /** Absent: nothing is to be kept. */
  readonly place?: Place;
  readonly kept?: Kept;
}

/** All of it in shared memory. */
export interface HandedCode extends Found {
  /** The file's URL. */
  readonly file: string;
}

/** The settings of a thread, as far as they are known before the package is loaded. */
export interface HasHandedCode {
  readonly compiled?: HandedCode;
}

/** Returns what the driver has handed to this thread, if it is of that file. */
export function handedTo(file: string): HandedCode | undefined {
  const { workerData } = process.getBuiltinModule("node:worker_threads");
  const { compiled } = (workerData ?? {}) as HasHandedCode;
  return compiled?.file === file ? compiled : undefined;
}

/**
 * Returns a function that returns what a thread gets, which is called for each thread: it looks for
 * kept code until there is some.
 *
 * @param findPlace returns where the threads' code is kept, if anywhere
 */
export function handing(
  file: URL,
  findPlace: () => Place | undefined,
): () => HandedCode | undefined {
  let handed: HandedCode | undefined;
  return () => {
    try {
      // The flags of V8, on which it depends, may have changed.
      const place = findPlace();
      if (place === undefined) return undefined;
      const isSame = handed?.place?.path === place.path;
      if (isSame && handed?.kept?.isPartial === false) return handed;
      const source = handed?.source ?? shared(readFileSync(file));
      const kept = readKept(place.path, source);
      handed = {
        file: file.href,
        source,
        place,
        ...(kept === undefined ? {} : { kept: { ...kept, code: shared(kept.code) } }),
      };
      return handed;
    } catch {
      // The file is gone: the thread says so.
      return undefined;
    }
  };
}

function shared(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
