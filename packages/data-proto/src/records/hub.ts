/**
 * Files of the Hugging Face Hub by name: `hf://datasets/OWNER/NAME/train.parquet` of a data set,
 * `hf://OWNER/NAME` of a model; `@REVISION` behind the name. They are copied once into the Hub's
 * own cache, `snapshots/COMMIT/FILE`, where Python's huggingface_hub finds them, too.
 *
 * Environment: HF_TOKEN for what is not public, HF_ENDPOINT for another Hub, HF_HOME and
 * HF_HUB_CACHE for another cache. A file of a commit that is in the cache needs no network.
 */

import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { access, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type * as Hub from "@huggingface/hub";
import { HubFileError } from "../errors.ts";

const scheme = "hf://";

/** Whether a path names a file or folder of the Hugging Face Hub. */
export function isHubPath(path: string): boolean {
  return path.startsWith(scheme);
}

interface HubPlace {
  readonly type: "dataset" | "model";
  /** "OWNER/NAME" */
  readonly name: string;
  readonly revision: string;
  /** The path in the repository; empty for all of it. */
  readonly file: string;
}

const form =
  /^hf:\/\/(datasets\/)?([^/@]+\/[^/@]+)(?:@(refs\/(?:convert|pr)\/[^/]+|[^/]+))?(?:\/(.*))?$/;

function placeOf(path: string): HubPlace {
  const [, kind, name, revision = "main", file = ""] = form.exec(path) ?? [];
  if (name === undefined || (kind === undefined && /^(datasets|spaces|buckets)\//.test(name))) {
    throw new HubFileError(path, "it must be hf://datasets/OWNER/NAME/FILE or hf://OWNER/NAME");
  }
  if (!isInside(file)) throw new HubFileError(path, "it leads out of the repository");
  const type = kind === undefined ? "model" : "dataset";
  return { type, name, revision: decodeURIComponent(revision), file };
}

/** Whether a path in a repository stays there: it becomes a path in the cache. */
function isInside(file: string): boolean {
  return !file.startsWith("/") && !file.split(/[\\/]/).includes("..");
}

/** Returns the path of the file in the cache. Rejects with HubFileError. */
export async function hubFile(path: string): Promise<string> {
  const place = placeOf(path);
  if (place.file === "") throw new HubFileError(path, "it names no file");
  const { folder, fetched } = await snapshot(path, place, [place.file]);
  if (fetched.length === 0) throw new HubFileError(path, "the repository has no such file");
  return join(folder, place.file);
}

/**
 * Returns the folder in the cache with some files of a repository, as far as they are there.
 * Rejects with HubFileError.
 *
 * @param path may name a folder in the repository
 * @param isWanted whether a file is needed, by its path in that folder
 */
export async function hubFolder(
  path: string,
  isWanted: (file: string) => boolean,
): Promise<string> {
  const place = placeOf(path);
  const inside = place.file === "" || place.file.endsWith("/") ? place.file : `${place.file}/`;
  const { folder } = await snapshot(
    path,
    place,
    (file) => file.startsWith(inside) && isWanted(file.slice(inside.length)),
  );
  return join(folder, inside);
}

const commit = /^[0-9a-f]{40}$/;

async function snapshot(
  path: string,
  { type, name, revision }: HubPlace,
  wanted: readonly string[] | ((file: string) => boolean),
): Promise<{ readonly folder: string; readonly fetched: readonly string[] }> {
  const hub = await library(path);
  const repo = { type, name };
  const { HF_TOKEN: accessToken, HF_ENDPOINT: hubUrl } = process.env;
  const endpoint = {
    ...(hubUrl === undefined ? {} : { hubUrl }),
    ...(accessToken === undefined ? {} : { accessToken }),
  };
  try {
    const sha = commit.test(revision)
      ? revision
      : await commitOf(hub, { type, name, revision, ...endpoint });
    if (!commit.test(sha)) throw new HubFileError(path, `the Hub names no commit, but ${sha}`);
    const folder = join(hub.getHFHubCachePath(), hub.getRepoFolderName(repo), "snapshots", sha);
    const at = { repo, revision: sha, ...endpoint };
    const files =
      typeof wanted === "function"
        ? (await filesOf(hub.listFiles({ ...at, recursive: true }))).filter(wanted)
        : wanted;
    const fetched: string[] = [];
    for (const file of files) {
      const target = join(folder, file);
      if (await isThere(target)) fetched.push(file);
      else {
        const blob = await hub.downloadFile({ ...at, path: file });
        if (blob === null) continue;
        await save(blob, target);
        fetched.push(file);
      }
    }
    return { folder, fetched };
  } catch (error) {
    if (error instanceof HubFileError) throw error;
    throw new HubFileError(path, reasonOf(error), error);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!("statusCode" in error)) return error.message;
  return `the Hub answered ${String(error.statusCode)}: ${error.message}`;
}

interface HubQuery extends Pick<HubPlace, "type" | "name" | "revision"> {
  readonly hubUrl?: string;
  readonly accessToken?: string;
}

async function commitOf(hub: typeof Hub, { type, ...query }: HubQuery): Promise<string> {
  const asked = { ...query, additionalFields: ["sha" as const] };
  const { sha } = type === "dataset" ? await hub.datasetInfo(asked) : await hub.modelInfo(asked);
  return sha;
}

async function filesOf(entries: AsyncIterable<Hub.ListFileEntry>): Promise<string[]> {
  const all = await Array.fromAsync(entries);
  const files = all.filter(({ type, path }) => type === "file" && isInside(path));
  return files.map(({ path }) => path);
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** Under another name first: a file in the cache is whole. */
async function save(blob: Blob, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const part = `${target}.${randomUUID()}.incomplete`;
  try {
    await pipeline(Readable.from(blob.stream()), createWriteStream(part));
    await rename(part, target);
  } finally {
    await rm(part, { force: true });
  }
}

/** The library is a peer: few need it. */
async function library(path: string): Promise<typeof Hub> {
  try {
    return await import("@huggingface/hub");
  } catch (error) {
    const problem = "hf:// paths need the package @huggingface/hub: npm install @huggingface/hub";
    throw new HubFileError(path, problem, error);
  }
}
