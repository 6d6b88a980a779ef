/** The code of one class, for a machine that gets it in another way than from an agent. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { collectInThread } from "./thread.ts";

/** One file, with its path in forward slashes. */
export interface CodeFile {
  readonly path: string;
  readonly content: Buffer;
  readonly isExecutable: boolean;
}

/** The files that a module reaches. */
export interface ClassCode {
  /** With their contents. */
  readonly files: readonly CodeFile[];
  /** Path, and its target relative to that place. */
  readonly links: readonly (readonly [path: string, target: string])[];
  /** The URL of their root at the driver; it ends in "/". */
  readonly rootUrl: string;
}

/** Reads the files that a module reaches. Rejects with RaySystemError. */
export async function readClassCode(moduleUrl: string): Promise<ClassCode> {
  const { root, rootUrl, manifest } = await collectInThread({
    workingDir: true,
    excludes: [],
    modules: [moduleUrl],
    currentDirectory: process.cwd(),
  });
  const files = await Promise.all(
    manifest.files.map(async ([path, , executable]) => ({
      path,
      content: await readFile(join(root, path)),
      isExecutable: executable === 1,
    })),
  );
  return { files, links: manifest.links, rootUrl };
}
