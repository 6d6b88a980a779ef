/** The commit of a checkout, read from git's files: no process is started for it. */

import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** Returns the commit of the checkout that the folder is in; undefined outside one. */
export async function gitCommit(folder: string): Promise<string | undefined> {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const commit = await headOf(join(at, ".git"));
    if (commit !== undefined || dirname(at) === at) return commit;
  }
}

async function headOf(path: string): Promise<string | undefined> {
  // A worktree has a file that names its folder.
  const named = /^gitdir: (.+)$/m.exec(await textOf(path))?.[1];
  const git = named === undefined ? path : resolve(dirname(path), named);
  const head = (await textOf(join(git, "HEAD"))).trim();
  const ref = /^ref: (.+)$/.exec(head)?.[1];
  return commitIn(ref === undefined ? head : await commitOf(git, ref));
}

async function commitOf(git: string, ref: string): Promise<string> {
  const common = resolve(git, (await textOf(join(git, "commondir"))).trim());
  const loose = [await textOf(join(git, ref)), await textOf(join(common, ref))].join("").trim();
  if (loose !== "") return loose.slice(0, 64);
  const packed = (await textOf(join(common, "packed-refs"))).split("\n");
  return packed.find((line) => line.endsWith(` ${ref}`))?.split(" ")[0] ?? "";
}

function commitIn(text: string): string | undefined {
  return /^[0-9a-f]{40,64}/.exec(text)?.[0];
}

/** Returns "" for what is no readable file. */
function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
