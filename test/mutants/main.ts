/**
 * Puts each fault of mutants.ts into a copy of this checkout, one after the other, and says which test notices it.
 *
 *     npx -y pnpm@12 test:mutants [--suite gate|full] [--only ID,ID] [--at COMMIT] [--markdown]
 *
 * The copy is a clone of what is committed, in a temporary folder; its tests must pass before anything is changed. Ends with 1 where a mutant survives, or is
 * none: it must be found once. With --at the copy is an earlier commit with its own tests, for a comparison; of a mutant's files those are run that it has, else all
 * of the package.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Mutant, mutants } from "./mutants.ts";

/** A run that hangs is ended, which counts: a test that hangs fails. */
const boundMs = 300_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values: flags } = parseArgs({
  options: {
    suite: { type: "string", default: "gate" },
    only: { type: "string" },
    at: { type: "string" },
    markdown: { type: "boolean", default: false },
  },
});
const chosen = flags.only === undefined ? undefined : new Set(flags.only.split(","));
const some = mutants.filter(({ id }) => chosen?.has(id) ?? true);
if (some.length === 0) throw new Error(`--only names no mutant: ${flags.only ?? ""}`);

interface Verdict {
  readonly mutant: Mutant;
  /** The first test that failed; undefined: it survives. */
  readonly killer: string | undefined;
  /** Why it says nothing. */
  readonly invalid?: string;
  readonly seconds: number;
}

const folder = mkdtempSync(join(tmpdir(), "rayling-mutants-"));
let verdicts: Verdict[] = [];
try {
  const copy = copyOf(folder);
  const files = thereIn(copy, [...new Set(some.flatMap(({ tests }) => tests))]);
  const { failure } = await run(files, copy, files.length * boundMs);
  if (failure !== undefined) throw new Error(`without any mutant a test fails: ${failure}`);
  for (const mutant of some) {
    const verdict = await tried(mutant, copy);
    verdicts = [...verdicts, verdict];
    console.log(lineOf(verdict));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const killed = verdicts.filter(({ killer }) => killer !== undefined).length;
if (flags.markdown) console.log(`\n${tableOf(verdicts)}`);
console.log(`${killed} of ${verdicts.length} mutants are killed by the suite "${flags.suite}"`);
process.exitCode = killed === verdicts.length ? 0 : 1;

function copyOf(parent: string): string {
  const copy = join(parent, "main");
  execFileSync("git", ["clone", "-q", root, copy]);
  if (flags.at !== undefined) execFileSync("git", ["checkout", "-q", flags.at], { cwd: copy });
  const shared = join(dirname(root.replace(/\/$/, "")), "shared");
  if (existsSync(shared)) symlinkSync(shared, join(parent, "shared"));
  const install = ["-y", "pnpm@12", "install", "--frozen-lockfile", "--prefer-offline"];
  execFileSync("npx", install, { cwd: copy, stdio: ["ignore", "ignore", "inherit"] });
  return copy;
}

function thereIn(copy: string, files: readonly string[]): string[] {
  return files.filter((file) => existsSync(join(copy, file)));
}

async function tried(mutant: Mutant, copy: string): Promise<Verdict> {
  const began = performance.now();
  const verdict = (more: Pick<Verdict, "killer" | "invalid">): Verdict => ({
    mutant,
    ...more,
    seconds: (performance.now() - began) / 1000,
  });
  const path = join(copy, "packages", `${mutant.file}.ts`);
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const named = thereIn(copy, mutant.tests);
  const tests =
    named.length > 0 ? named : [dirname(`packages/${mutant.file}`).replace(/\/src\b.*/, "/test/")];
  const found = text.split(mutant.find).length - 1;
  if (found !== 1) return verdict({ killer: undefined, invalid: `is found ${found} times` });
  writeFileSync(
    path,
    text.replace(mutant.find, () => mutant.replace),
  );
  try {
    const { failure } = await run(tests, copy, boundMs);
    return verdict({ killer: failure });
  } finally {
    writeFileSync(path, text);
  }
}

/** Runs these files. `failure`: the first test that failed, or what else did; undefined: all is well. */
async function run(
  tests: readonly string[],
  copy: string,
  withinMs: number,
): Promise<{ readonly failure: string | undefined }> {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const mode = flags.suite === "full" ? ["--mode", "full"] : [];
  const child = spawn(
    join(copy, "node_modules/.bin/vitest"),
    ["run", ...mode, "--bail", "1", "--typecheck.enabled=false", ...tests],
    {
      cwd: copy,
      stdio: "ignore",
      // A group of its own, so that what a hang leaves behind ends with it.
      detached: true,
      env: { ...process.env, RAYLING_TEST_REPORT: report },
    },
  );
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, withinMs);
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  if (isLate) return { failure: `nothing ended within ${withinMs / 1000} s` };
  if (signal !== null) throw new Error(`vitest was ended by ${signal}`);
  if (code === 0) return { failure: undefined };
  return { failure: firstFailure(report, copy) ?? "an error outside of any test" };
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function firstFailure(report: string, copy: string): string | undefined {
  if (!existsSync(report)) return undefined;
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed !== undefined) return `${name.replace(`${copy}/`, "")}: ${failed.fullName}`;
  }
  return undefined;
}

function lineOf({ mutant, killer, invalid, seconds }: Verdict): string {
  const fate = invalid === undefined ? (killer ?? "SURVIVES") : `INVALID: it ${invalid}`;
  return `${mutant.id} (${seconds.toFixed(0)} s): ${fate}`;
}

function tableOf(all: readonly Verdict[]): string {
  const rows = all.map(({ mutant, killer = "**survives**", invalid }) =>
    [
      mutant.id,
      `\`${mutant.file.replace("/src", "")}\``,
      mutant.breaks,
      invalid === undefined ? killer : `**it ${invalid}**`,
    ]
      .map((cell) => cell.replaceAll("|", "\\|"))
      .join(" | "),
  );
  return [
    "| Mutant | File | What a user would notice | The test that notices |",
    "|---|---|---|---|",
  ]
    .concat(rows.map((row) => `| ${row} |`))
    .join("\n");
}
