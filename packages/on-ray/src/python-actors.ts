/**
 * Actors of the cluster itself, in Python or of the driver's classes: requests of the session
 * become requests to the gateway, in JSON, and folders and code of the driver go into Ray's store.
 */
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { readClassCode } from "@rayling/cluster";
import { type ForeignAnswer, type ForeignRequest, RaySystemError } from "@rayling/core/cluster";
import { tooLong } from "./gateway/gateway-client.ts";
import { longestRequest } from "./gateway/messages.ts";
import type { JobsApi } from "./jobs/jobs-api.ts";
import { zip, type ZipFile } from "./jobs/zip.ts";

/** Folders and files that Python does not need. */
const unneeded = /(?:^|\/)(?:\.git|node_modules|__pycache__|\.venv)(?:\/|$)|\.pyc$/;

/** The most bytes of a folder, which is read whole. */
const mostBytes = 100 * 1024 * 1024;

/** Asks the gateway for something. */
type Ask = (op: string, given: object) => Promise<unknown>;

export class PythonActors {
  readonly #jobs: JobsApi;
  readonly #ask: Ask;
  /** Addresses in Ray's store, by folder or module. */
  readonly #uploaded: Map<string, Promise<string>> = new Map();

  constructor(jobs: JobsApi, ask: Ask) {
    this.#jobs = jobs;
    this.#ask = ask;
  }

  async ask(request: ForeignRequest): Promise<ForeignAnswer> {
    const { kind, ...given } = request;
    const values = "args" in request ? { args: textOf(kind, request.args) } : {};
    const workingDir = await this.#workingDirOf(request);
    const folder = workingDir === undefined ? {} : { workingDir };
    return answerOf(await this.#ask(`python_${kind}`, { ...given, ...values, ...folder }));
  }

  /** Resolves with the address of what the actor is made from. */
  async #workingDirOf(request: ForeignRequest): Promise<string | undefined> {
    if (request.kind === "make") {
      const { moduleUrl } = request.key;
      return this.#upload(moduleUrl, () => codeOf(moduleUrl));
    }
    if (request.kind !== "create" || request.workingDir === undefined) return undefined;
    const { workingDir } = request;
    return this.#upload(workingDir, () => filesOf(workingDir));
  }

  /** Ray removes a package with the last job that uses it: each session has one of its own. */
  #upload(what: string, read: () => Promise<readonly ZipFile[]>): Promise<string> {
    let uploaded = this.#uploaded.get(what);
    if (uploaded === undefined) {
      uploaded = read().then((files) =>
        this.#jobs.upload(`_ray_pkg_rayling_python_${randomUUID()}.zip`, () => zip(files)),
      );
      this.#uploaded.set(what, uploaded);
      uploaded.catch(() => this.#uploaded.delete(what));
    }
    return uploaded;
  }
}

/** Says in the folder of a class where the driver has its files, and which links Ray left out. */
const aboutCode = "rayling-code.json";

/** The files that a module reaches. */
async function codeOf(moduleUrl: string): Promise<ZipFile[]> {
  const { files, links, rootUrl } = await readClassCode(moduleUrl);
  const about = Buffer.from(`${JSON.stringify({ rootUrl, links })}\n`);
  return [...files.map(placed), { path: aboutCode, content: about }];
}

/** Ray takes a single folder of a package for the package. */
function placed({ path, ...file }: ZipFile): ZipFile {
  return { ...file, path: `code/${path}` };
}

interface Values {
  readonly value: unknown;
  readonly buffers: readonly Uint8Array[];
}

/** @throws RaySystemError for more bytes than a request may have */
function textOf(kind: string, { value, buffers }: Values): object {
  // JSON has no bytes, and base64 has 4 for 3.
  const bytes = 4 * buffers.reduce((sum, one) => sum + Math.ceil(one.length / 3), 0);
  if (bytes > longestRequest) throw tooLong(`python_${kind}`, bytes);
  return { value, buffers: buffers.map((one) => Buffer.from(one).toString("base64")) };
}

function answerOf(said: unknown): ForeignAnswer {
  const answer = Object(said) as {
    readonly ok?: { readonly value: unknown; readonly buffers: readonly string[] };
    readonly failure?: ForeignAnswer["failure"];
  };
  if (answer.failure !== undefined) return { failure: answer.failure };
  if (answer.ok === undefined) throw new RaySystemError("the gateway gives no answer");
  const { value, buffers } = answer.ok;
  return {
    ok: { value, buffers: buffers.map((one) => new Uint8Array(Buffer.from(one, "base64"))) },
  };
}

async function filesOf(folder: string): Promise<ZipFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !unneeded.test(path))
    .toSorted();
  const files: ZipFile[] = [];
  let bytes = 0;
  for (const path of paths) {
    const content = await readFile(join(folder, path));
    bytes += content.length;
    if (bytes > mostBytes) {
      throw new RaySystemError(`the folder ${folder} has more than ${mostBytes} bytes for Python`);
    }
    files.push({ path, content });
  }
  return files;
}
