/**
 * A class of a driver's code, which Ray has brought to this machine: a detached actor of a session
 * on Ray (`packages/on-ray/src/python-actors.ts`).
 */
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { guardDriverCode, Loader, type RemoteKey, setCodeRoots } from "@rayling/core/code";
import { RaySystemError } from "@rayling/core/cluster";

/** Says where the driver has the files, and which links Ray left out. */
export const shippedCode = "rayling-code.json";

interface About {
  readonly rootUrl: string;
  readonly links: readonly (readonly [path: string, target: string])[];
}

/**
 * @param path of `rayling-code.json`
 * @param keyText the key of the class, in JSON
 */
export async function openShippedClass(
  path: string,
  keyText: string,
): Promise<{ readonly name: string; readonly target: Function }> {
  const { rootUrl, links }: About = JSON.parse(await readFile(path, "utf8"));
  const folder = join(dirname(path), "code");
  for (const [link, target] of links) await makeLink(join(folder, link), target);
  setCodeRoots([{ driver: rootUrl, here: pathToFileURL(`${folder}/`).href }]);
  guardDriverCode();
  const key: RemoteKey = JSON.parse(keyText);
  const target = await new Loader().find(key);
  if (typeof target !== "function") throw new RaySystemError(`${key.name} is no class`);
  return { name: key.name, target };
}

/** Other processes make the same links. */
async function makeLink(path: string, target: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  try {
    await symlink(target, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}
