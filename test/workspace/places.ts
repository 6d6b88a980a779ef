/** A project that stands on the packed tarballs, with tools of others, and what its programs must report wherever they run (test/fixtures/places). */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import type { Report } from "../fixtures/places/report.ts";
import { installAll, packAll } from "./packed-packages.ts";

const run = promisify(execFile);
export const fixtures: string = join(import.meta.dirname, "../fixtures/places");

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Project {
  readonly folder: string;
  /** Why it could not be made: then its tests are skipped. */
  readonly away: string | undefined;
  /** Runs Node there; it may fail. */
  node(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** @param files by path in the project */
  write(files: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

/** @param tools versions by name of their package */
export async function makeProject(tools: Readonly<Record<string, string>>): Promise<Project> {
  // No part of its path is taken for a package of ours.
  const folder = await mkdtemp(join(tmpdir(), "places-"));
  const away = await install(folder, tools);
  await mkdir(join(folder, "app"));
  for (const file of await readdir(fixtures)) {
    await copyFile(join(fixtures, file), join(folder, "app", file));
  }
  return {
    folder,
    away,
    async node(args, env = {}) {
      const options = { cwd: folder, env: environment(env), maxBuffer: 64 * 1024 * 1024 };
      try {
        return { code: 0, ...(await run(process.execPath, args, options)) };
      } catch (error) {
        const { code, stdout, stderr } = error as Ended;
        return { code, stdout, stderr };
      }
    },
    async write(files) {
      for (const [path, text] of Object.entries(files)) {
        await mkdir(join(folder, path, ".."), { recursive: true });
        await writeFile(join(folder, path), text);
      }
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function install(
  folder: string,
  tools: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const packed = await packAll(folder, ["--config.ignore-scripts=true"]);
  try {
    await installAll(folder, { ...packed, ...tools });
    return undefined;
  } catch (error) {
    const { stderr = "" } = error as Partial<Ended>;
    const isAway = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|ENETUNREACH/.test(stderr);
    if (isAway) return "the tools cannot be fetched: the registry is away";
    throw error;
  }
}

/** As a user's shell has it: nothing of the tests that run here. */
function environment(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const ofTests =
    /^(NODE_|VITEST|RAYLING_|npm_|JEST|FORCE_COLOR$|TEST$|DEV$|PROD$|MODE$|SSR$|BASE_URL$)/;
  const env = Object.entries(process.env).filter(([name]) => !ofTests.test(name));
  return { ...Object.fromEntries(env), NO_COLOR: "1", ...more };
}

export interface Expected {
  /** Stacks name the files of the project by their own lines; a bundle without a map has others. */
  readonly hasSourceLines?: boolean;
  /** What remotes return beside those of the fixtures, by name. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** What becomes of a remote of a module that is imported after the first call. */
  readonly late?: string;
  readonly extension?: string;
}

const values = {
  charge: "charge",
  refund: "refund",
  close: "close",
  first: "first",
  second: "second",
  double: 42,
  passedOn: 7,
  counter: [2, 3],
  early: "early",
};

const evaluations = { actors: 1, early: 1, errors: 1, late: 1, made: 1 };

/** Each remote was the right one, errors came back as instances with clean stacks, and the driver evaluated each module once: on threads and processes. */
export function expectReports(
  { code, stdout, stderr }: Ended,
  { hasSourceLines = true, more = {}, late = "late", extension = ".ts" }: Expected = {},
): void {
  const start = '{"isolation"';
  const reports = stdout
    .split("\n")
    .filter((line) => line.includes(start))
    .map((line) => JSON.parse(line.slice(line.indexOf(start))) as Report);
  const said = reports.length === 2 ? "" : stdout + stderr;
  expect({ code, said }).toEqual({ code: 0, said: "" });
  expect(reports.map(({ isolation }) => isolation)).toEqual(["thread", "process"]);
  for (const report of reports) {
    expect(report.values).toEqual({ ...values, ...more, late });
    expect(report.evaluations).toEqual(evaluations);
    for (const [kind, { stack, ...caught }] of Object.entries(report.caught)) {
      expect(caught).toEqual({ isInstance: true, isTaskError: true, isEmpty: false });
      const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
      expect(frames.filter((line) => /node:internal|[\\/]@?rayling[\\/]/.test(line))).toEqual([]);
      const border = frames.findIndex((line) => / at <.* on host-\w+>$/.test(line));
      expect(border, stack).toBeGreaterThan(0);
      if (!hasSourceLines) continue;
      const thrown = kind === "task" ? "by a task" : "by an actor";
      expect(frames[0]).toContain(lineOf("actors.ts", thrown, extension));
      const local = frames.slice(border + 1).join("\n");
      // Its line is the call's; of minified code, a map says about where.
      expect(local).toContain(`report${extension}:`);
    }
  }
}

/** `file:line:` of a text in a fixture. */
function lineOf(file: string, text: string, extension: string): string {
  const lines = readFileSync(join(fixtures, file), "utf8").split("\n");
  const index = lines.findIndex((line) => line.includes(text));
  expect(index).toBeGreaterThanOrEqual(0);
  return `${file.replace(".ts", extension)}:${index + 1}:`;
}
