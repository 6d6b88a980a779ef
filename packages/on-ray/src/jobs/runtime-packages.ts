/**
 * The packages that make a machine of Ray run TypeScript: the Python package `rayling`, the
 * driver's own npm packages, and Node. Ray brings them; the machines need no registry and no Node.
 */
import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { listRuntime, type RuntimeListing } from "@rayling/cluster";
import type { JobsApi } from "./jobs-api.ts";
import { zip, type ZipFile } from "./zip.ts";

/** It is published with this package; a checkout has it beside the packages. */
const published: string = join(import.meta.dirname, "../python/rayling");
const checkout: string = join(import.meta.dirname, "../../../../python/src/rayling");

/** Speed counts more than size: files go to a cluster once. */
const level = 1;

/** On Linux: the file that runs, also when another one has taken its place. */
const runningNode = "/proc/self/exe";

/** How much of a large file is read at a time. */
const readBytes = 1_048_576;

/** Where the Python package looks for the npm packages. */
const place = "rayling/_js";

interface RuntimePackage {
  /** Its name in the store of Ray, which its files decide: known before the package is made. */
  readonly name: string;
  files(): Promise<readonly ZipFile[]>;
}

/** The packages of one session. */
export class RuntimePackages {
  readonly #packages: readonly RuntimePackage[];

  private constructor(packages: readonly RuntimePackage[]) {
    this.#packages = packages;
  }

  /** Reads them. Rejects with RaySystemError. */
  static async read(): Promise<RuntimePackages> {
    const runtime = await runtimePackage();
    const isOwn = process.platform === "linux";
    return new RuntimePackages(isOwn ? [runtime, await nodePackage()] : [runtime]);
  }

  /**
   * Uploads those that are not there. Resolves with their addresses.
   *
   * Ray removes a package with the last job that uses it. That job may end between this look and
   * the start of the next job, so that the next one looks again once it runs.
   */
  upload(jobs: JobsApi): Promise<readonly string[]> {
    return Promise.all(
      this.#packages.map((one) => jobs.upload(one.name, async () => zip(await one.files(), level))),
    );
  }
}

async function runtimePackage(): Promise<RuntimePackage> {
  const files = await runtimeFiles();
  const hash = createHash("sha256");
  for (const { path, content } of files)
    hash.update(`${path}\0${content.length}\0`).update(content);
  return { name: nameOf("runtime", hash.digest("hex")), files: async () => files };
}

/**
 * Node has more than 100 MB: a program looks at them once, and holds them only while they are
 * packed.
 */
async function nodePackage(): Promise<RuntimePackage> {
  nodeDigest ??= await digestOf(runningNode);
  return { name: nameOf("node", nodeDigest), files: nodeFiles };
}

let nodeDigest: string | undefined;

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: readBytes }), hash);
  return hash.digest("hex");
}

function nameOf(kind: string, digest: string): string {
  return `_ray_pkg_rayling_${kind}_${digest.slice(0, 24)}.zip`;
}

async function nodeFiles(): Promise<ZipFile[]> {
  const about = `"""Node ${process.version} for ${process.platform}-${process.arch}."""\n`;
  return [
    { path: "rayling_node/__init__.py", content: Buffer.from(about) },
    {
      path: "rayling_node/bin/node",
      content: await readFile(runningNode),
      isExecutable: true,
    },
  ];
}

async function runtimeFiles(): Promise<ZipFile[]> {
  return [...(await pythonFiles()), ...(await npmFiles(listRuntime()))];
}

async function pythonFiles(): Promise<ZipFile[]> {
  const folder = existsSync(checkout) ? checkout : published;
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith(".py"));
  return Promise.all(
    paths.toSorted().map(async (path) => ({
      path: `rayling/${path}`,
      content: await readFile(join(folder, path)),
    })),
  );
}

/** Ray unpacks no links, so `rayling.runtime` makes them. */
async function npmFiles(listing: RuntimeListing): Promise<ZipFile[]> {
  const { root, manifest, folders, conditions } = listing;
  const about = { rayling: folders["rayling"], conditions, links: manifest.links };
  const files: ZipFile[] = [];
  for (const [path, , executable] of manifest.files) {
    files.push({
      path: `${place}/${path}`,
      content: await readFile(join(root, path)),
      isExecutable: executable === 1,
    });
  }
  return [
    ...files,
    { path: `${place}/shipped.json`, content: Buffer.from(`${JSON.stringify(about)}\n`) },
  ];
}
