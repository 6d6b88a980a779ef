/** What stands where a command writes: results of before are kept, whatever is run again. */

import { mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { fileOf, folder, inProcess, recordsOf, workspace } from "./command.ts";

const reward = join(workspace, "packages/reward-loop/test/fixtures/rewards.ts:value");

async function inputOf(...texts: readonly string[]): Promise<string> {
  return fileOf(texts.map((response) => ({ response, ground_truth: "1", data_source: "test" })));
}

const score = (input: string, out: string): ReturnType<typeof inProcess> =>
  inProcess("score", input, "--reward", reward, "--out", out, "--workers", "1");

/** A log as a run leaves it, of scores 1 and 2. */
let earlier = "";
const closing: (() => Promise<void>)[] = [];
beforeAll(async () => {
  const directory = await folder((remove) => void closing.push(remove));
  const [input, out] = [join(directory, "solutions.jsonl"), join(directory, "rewards.jsonl")];
  const lines = ["1", "2"].map((response) => JSON.stringify({ response, ground_truth: "1" }));
  await writeFile(input, lines.join("\n"));
  const first = await score(input, out);
  expect(first).toMatchObject({ code: 0 });
  expect(asideOf(first.stderr)).toBeUndefined();
  earlier = await readFile(out, "utf8");
});
afterAll(async () => {
  for (const close of closing) await close();
});

const asideOf = (stderr: string): string | undefined => /is now in (\S+)$/m.exec(stderr)?.[1];

describe("rayling score", () => {
  test("moves rewards of an earlier run aside, says where, and keeps all of them", async () => {
    const directory = await folder();
    const out = join(directory, "rewards.jsonl");
    await writeFile(out, earlier);
    const asides: string[] = [];
    for (const text of ["3", "4"]) {
      const before = await readFile(out, "utf8");
      const again = await score(await inputOf(text), out);
      expect(again).toMatchObject({ code: 0 });
      const aside = asideOf(again.stderr) as string;
      expect(aside).toMatch(/\/rewards\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-2)?\.jsonl$/);
      expect(await readFile(aside, "utf8")).toBe(before);
      expect((await recordsOf(out)).map((record) => record.score)).toEqual([Number(text)]);
      asides.push(aside);
    }
    expect(new Set(asides).size).toBe(2);
    expect(await readdir(directory)).toHaveLength(3);
  });

  test("by a link: what it leads to is moved, and the link stays", async () => {
    const directory = await folder();
    const [out, target] = [join(directory, "rewards.jsonl"), join(directory, "there.jsonl")];
    await symlink(target, out);
    await writeFile(target, earlier);
    const again = await score(await inputOf("2"), out);
    expect(asideOf(again.stderr)).toMatch(/\/there\..*Z\.jsonl$/);
    expect(await readlink(out)).toBe(target);
    expect((await recordsOf(target)).map((record) => record.score)).toEqual([2]);
  });

  test.each([
    ["a text", "my notes\nof years\n"],
    ["another JSON Lines", '{"question": "?"}\n'],
    ["one line without an end", "notes"],
  ])("refuses %s before anything runs, and leaves it as it is", async (_, content) => {
    const out = join(await folder(), "notes.jsonl");
    await writeFile(out, content);
    const { code, stdout, stderr } = await score(await inputOf("1"), out);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(`rayling: --out ${out} does not contain rewards: give another file.\n`);
    expect(await readFile(out, "utf8")).toBe(content);
  });

  test("takes an empty file", async () => {
    const out = join(await folder(), "rewards.jsonl");
    await writeFile(out, "");
    expect(asideOf((await score(await inputOf("1"), out)).stderr)).toBeUndefined();
    expect(await recordsOf(out)).toHaveLength(1);
  });
});

test("a table and a page of another log are moved aside; of the same log they stay as they are", async () => {
  const directory = await folder();
  const logs = ["one.jsonl", "two.jsonl"].map((name) => join(directory, name));
  await writeFile(logs[0] as string, earlier);
  await writeFile(logs[1] as string, earlier.replaceAll('"score":1', '"score":3'));
  const made = join(directory, "made");
  await mkdir(made);
  const [table, page] = [join(made, "table.parquet"), join(made, "page.html")];
  const make = async (log: string): Promise<string> => {
    const both = [
      await inProcess("rewards", "export", log, "--out", table),
      await inProcess("rewards", "report", log, "--html", page),
    ];
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    return both.map(({ stderr }) => stderr).join("");
  };
  expect(await make(logs[0] as string)).toBe("");
  const before = await Promise.all([readFile(table), readFile(page)]);
  expect(await make(logs[0] as string)).toBe("");
  expect(await readdir(made)).toHaveLength(2);
  expect(await make(logs[1] as string)).toMatch(
    /the table is now in .*\n.*the page is now in .*\n/,
  );
  const asides = (await readdir(made)).filter((name) => /Z\.(parquet|html)$/.test(name));
  const [oldPage, oldTable] = asides.toSorted().map((name) => join(made, name));
  expect(await readFile(oldTable as string)).toEqual(before[0]);
  expect(await readFile(oldPage as string)).toEqual(before[1]);
  expect(
    await inProcess("rewards", "export", logs[0] as string, "--out", "/dev/null"),
  ).toMatchObject({ code: 2, stderr: "rayling: /dev/null is not a file\n" });
  const nowhere = join(directory, "no", "table.parquet");
  const missing = await inProcess("rewards", "export", logs[0] as string, "--out", nowhere);
  expect(missing.stderr).toContain(nowhere);
});

describe("rayling report", () => {
  const metrics = '{"step":1,"data":{"critic/score/mean":0.5}}\n';

  async function runsIn(base: string, ...names: readonly string[]): Promise<string[]> {
    const runs = names.map((name) => join(base, name));
    for (const run of runs) {
      await mkdir(run);
      await writeFile(join(run, "metrics.jsonl"), metrics);
    }
    return runs;
  }

  test.each(["--out", "--trace"])("%s keeps a file that is there", async (flag) => {
    const base = await folder();
    const [run = ""] = await runsIn(base, "a");
    const notes = join(base, "notes.md");
    await writeFile(notes, "my notes");
    const { code, stderr } = await inProcess("report", run, flag, notes);
    expect(code).toBe(0);
    expect(await readFile(asideOf(stderr) ?? "", "utf8")).toBe("my notes");
    expect(await readFile(notes, "utf8")).toMatch(flag === "--out" ? /^<!doctype html>/i : /^\[/);
  });

  test.each(["--out", "--trace"])("%s refuses the files of a run", async (flag) => {
    const base = await folder();
    const [one = "", two = ""] = await runsIn(base, "a", "b");
    const folders = flag === "--out" ? [one, two] : [two];
    await symlink(two, join(base, "link"));
    for (const path of [join(two, "metrics.jsonl"), join(base, "link/metrics.jsonl")]) {
      const { code, stdout, stderr } = await inProcess("report", ...folders, flag, path);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toBe(`rayling: ${flag} ${path} is a file of the run itself\n`);
    }
    expect(await readFile(join(two, "metrics.jsonl"), "utf8")).toBe(metrics);
    expect(await readdir(two)).toEqual(["metrics.jsonl"]);
  });

  test("makes its own page and trace again without copies", async () => {
    const base = await folder();
    const [run = ""] = await runsIn(base, "a");
    const files = ["metrics.jsonl", "report.html", "trace.json"];
    for (const title of ["one", "two"]) {
      const made = await inProcess("report", run, "--title", title, "--trace");
      expect(made).toMatchObject({ code: 0, stderr: "" });
      expect((await readdir(run)).toSorted()).toEqual(files);
    }
  });

  test("--trace of a folder in which runs lie writes a trace for each", async () => {
    const base = await folder();
    const runs = await runsIn(base, "a", "b");
    const traces = runs.map((run) => join(run, "trace.json"));
    const made = await inProcess("report", base, "--trace", "--format", "json");
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(made.stdout)).toEqual({ report: join(base, "report.html"), traces });
    for (const trace of traces) expect(await readFile(trace, "utf8")).toMatch(/^\[/);
  });

  test("a --trace that cannot be is refused before anything is written", async () => {
    const base = await folder();
    const [one = "", two = ""] = await runsIn(base, "a", "b");
    const path = join(base, "trace.json");
    const cases: readonly [readonly string[], string][] = [
      [
        ["--trace", one, two],
        `--trace ${one} is a folder: give the folders of runs before --trace`,
      ],
      [
        [base, "--trace", path],
        `--trace ${path} is one file, and there are 2 runs: leave it out, for a trace in each folder`,
      ],
      [[one, "--out", path, "--trace", path], `--trace ${path} is the file of --out`],
    ];
    for (const [flags, problem] of cases) {
      const { code, stdout, stderr } = await inProcess("report", ...flags);
      expect({ code, stdout, stderr }).toEqual({
        code: 2,
        stdout: "",
        stderr: `rayling: ${problem}\n`,
      });
    }
    expect((await readdir(base)).toSorted()).toEqual(["a", "b"]);
    expect(await readdir(one)).toEqual(["metrics.jsonl"]);
  });
});

describe("rayling data gsm8k", () => {
  const question = { question: "1+1", answer: "#### 2" };

  test("keeps a file that is there, and makes equal rows again without a copy", async () => {
    const input = await fileOf([question]);
    const directory = await folder();
    const out = join(directory, "rows.jsonl");
    await writeFile(out, "precious\n");
    const first = await inProcess("data", "gsm8k", input, "--out", out);
    expect(first.code).toBe(0);
    expect(await readFile(asideOf(first.stderr) ?? "", "utf8")).toBe("precious\n");
    const second = await inProcess("data", "gsm8k", input, "--out", out);
    expect(second).toMatchObject({ code: 0, stderr: "" });
    expect(await readdir(directory)).toHaveLength(2);
  });

  test("refuses its own input", async () => {
    const input = await fileOf([question]);
    const before = await readFile(input, "utf8");
    const { code, stdout, stderr } = await inProcess("data", "gsm8k", input, "--out", input);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(`rayling: --out ${input} is the input itself\n`);
    expect(await readFile(input, "utf8")).toBe(before);
  });

  test("a row that cannot be read leaves the old file, and names the new one as the user did", async () => {
    const directory = await folder();
    const out = join(directory, "rows.jsonl");
    await writeFile(out, "precious\n");
    const { code } = await inProcess("data", "gsm8k", await fileOf([{}]), "--out", out);
    expect(code).toBe(2);
    expect(await readFile(out, "utf8")).toBe("precious\n");
    const table = join(directory, "rows.parquet");
    const { stderr } = await inProcess("data", "gsm8k", await fileOf([question]), "--out", table);
    expect(stderr).toContain(table);
    expect(await readdir(directory)).toEqual(["rows.jsonl"]);
  });
});

test("each training has a folder of its own, where latest leads to the newest; one that goes on stays in its folder", async () => {
  const directory = await folder();
  const before = process.cwd();
  process.chdir(directory);
  onTestFinished(() => process.chdir(before));
  const runs = join(directory, "runs/arithmetic/grpo");
  const overrides = [
    "trainer.project_name=arithmetic",
    "trainer.experiment_name=grpo",
    "trainer.logger=file",
    "trainer.save_freq=1",
    "trainer.resume_mode=auto",
    // Where files go is nothing that a model has a part in.
    "rayling.policy=timed",
    "rayling.policy_kwargs={seconds: {}}",
    "rayling.warm_start_steps=0",
    "rayling.task_kwargs.high=12",
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  ];
  const train = async (steps: number, ...more: string[]): Promise<string[]> => {
    const total = `trainer.total_training_steps=${steps}`;
    const args = ["train", "--config-name", "grpo", ...overrides, total, ...more];
    const { code, stdout, stderr } = await inProcess(...args);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const latest = await readlink(join(runs, "latest"));
    expect(stdout).toContain(join("runs/arithmetic/grpo", latest));
    return [latest, ...(await readdir(runs)).filter((name) => name !== "latest")];
  };
  const [first, ...one] = await train(1);
  expect(one).toEqual([first]);
  expect(await train(2)).toEqual([first, first]);
  const [second, ...two] = await train(1, "trainer.resume_mode=disable");
  expect(new Set(two)).toEqual(new Set([first, second]));
  expect(two).toHaveLength(2);
  const stepsIn = async (name: string | undefined): Promise<number[]> =>
    (await readFile(join(runs, name ?? "", "metrics.jsonl"), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { step: number }).step);
  expect((await stepsIn(first)).at(-1)).toBe(2);
  expect((await stepsIn(second)).at(-1)).toBe(1);
});
