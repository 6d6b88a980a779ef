/**
 * The packages that make a machine of Ray run TypeScript: the Python package `rayling` with its
 * JavaScript runtime inside, and Node. Ray brings them; the machines need no registry and no Node.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { RaySystemError } from "@rayling/core/cluster";
import { type JobsApi, packageName } from "./jobs-api.ts";
import { zip, type ZipFile } from "./zip.ts";

/** It is published with this package; a checkout makes it anew. */
const published: string = join(import.meta.dirname, "python.zip");

const checkout: string = join(import.meta.dirname, "../../../../python");

/** Node changes seldom, and is big: speed counts more than size. */
const levelOfNode = 1;

/** Uploads the packages that are not there. Resolves with their addresses. */
export async function uploadRuntime(jobs: JobsApi): Promise<readonly string[]> {
  const python = await pythonPackage();
  const addresses = [await jobs.upload(packageName(python), async () => python)];
  if (process.platform !== "linux") return addresses;
  const node = await readFile(process.execPath);
  const digest = createHash("sha256").update(node).digest("hex").slice(0, 24);
  const name = `_ray_pkg_rayling_node_${digest}.zip`;
  return [...addresses, await jobs.upload(name, () => nodePackage(node))];
}

function nodePackage(node: Buffer): Promise<Buffer> {
  const about = `"""Node ${process.version} for ${process.platform}-${process.arch}."""\n`;
  const files: ZipFile[] = [
    { path: "rayling_node/__init__.py", content: Buffer.from(about) },
    { path: "rayling_node/bin/node", content: node, isExecutable: true },
  ];
  return zip(files, levelOfNode);
}

/** RAYLING_RUNTIME_PACKAGE names one that is made already. */
async function pythonPackage(): Promise<Buffer> {
  const given = process.env["RAYLING_RUNTIME_PACKAGE"] ?? "";
  if (given !== "") return readFile(given);
  if (existsSync(join(checkout, "bundle.ts"))) return makePythonPackage();
  if (existsSync(published)) return readFile(published);
  throw new RaySystemError(
    `${published} is missing: this installation of @rayling/on-ray is incomplete`,
  );
}

/** Makes the package from this checkout. */
export async function makePythonPackage(): Promise<Buffer> {
  const made = await mkdtemp(join(tmpdir(), "rayling-runtime-"));
  try {
    await promisify(execFile)(process.execPath, [join(checkout, "bundle.ts"), made]);
    const python = await filesBelow(join(checkout, "src/rayling"), "rayling");
    const runtime = await filesBelow(made, "rayling/_js");
    return await zip([...python.filter(({ path }) => path.endsWith(".py")), ...runtime]);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

async function filesBelow(folder: string, prefix: string): Promise<ZipFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".map"))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  return Promise.all(
    paths.map(async (path) => ({
      path: `${prefix}/${relative(folder, path).split(sep).join("/")}`,
      content: await readFile(path),
    })),
  );
}
