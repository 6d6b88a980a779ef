/** A real scoring run and a real training on the page: its numbers are those of ray.state and of their files. */
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as ray from "@rayling/core";
import { outcomesIn, RewardLoopManager } from "@rayling/reward-loop";
import { loadTrainerConfig } from "@rayling/trainer/config";
import { runTraining } from "@rayling/trainer/run";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { count, duration, figure as figureText } from "../page/src/data/text.ts";
import { Counter } from "./fixtures/actors.ts";
import { folder } from "./fixtures/logs.ts";
import { expectSound, openPage } from "./fixtures/page.ts";
import { servedSession } from "./fixtures/served.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

const reward = { path: new URL("fixtures/rewards.ts", import.meta.url).pathname };

const responses: readonly string[] = Array.from({ length: 120 }, (_, at) =>
  at % 17 === 0 ? `throw ${at}` : `${(at % 5) / 4} answer ${at}`,
);

async function scoreAll(record: string): Promise<RewardLoopManager> {
  const loop = await RewardLoopManager.create({ workers: 2, concurrency: 8, reward, record });
  onTestFinished(() => loop.close());
  const samples = responses.map((response) => ({ response, dataSource: "maths", groundTruth: "" }));
  for await (const _ of loop.scoreStream(samples)) continue;
  return loop;
}

/** Reads a figure by its name. */
function figuresOf(page: Page): (name: string) => Promise<string | null> {
  return (name) =>
    page
      .locator("dl.facts div", { has: page.getByText(name, { exact: true }) })
      .first()
      .locator("dd")
      .textContent();
}

async function cellsOf(page: Page, label: string): Promise<readonly (readonly string[])[]> {
  const table = page.getByRole("region", { name: label, exact: true });
  const rows = await table.locator("tbody tr").all();
  return await Promise.all(rows.map((row) => row.locator("td").allTextContents()));
}

async function linesIn<Line>(directory: string, name: string): Promise<readonly Line[]> {
  const text = await readFile(join(directory, name), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line): Line => JSON.parse(line));
}

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("a scoring run is on the page as in its log and in ray.state, with the cause of each death", async () => {
    const { url } = await servedSession({ numCpus: 8 });
    const record = join(await folder(), "rewards.jsonl");
    const judge = Counter.options({ name: "judge", isolation: "process" }).remote();
    await ray.get(judge.increment.remote());
    const watched = await openPage(`${url}#/loops`);
    const { page, oddities } = watched;
    const shown = figuresOf(page);
    await page.getByText("No reward loop is open").waitFor();
    const loop = await scoreAll(record);

    const outcomes = [...(await outcomesIn(record)).values()];
    const scores = outcomes.flatMap(({ score }) => score ?? []);
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    expect(outcomes).toHaveLength(responses.length);
    await expect.poll(() => shown("Done")).toBe(count(outcomes.length));
    expect(await shown("Invalid")).toBe(count(outcomes.length - scores.length));
    expect(await shown("Mean score")).toBe(figureText(mean));
    const rows = await cellsOf(page, "Outcomes");
    expect(rows.map((row) => row.slice(0, 2))).toEqual([
      ["valid", count(scores.length)],
      ["user-code", count(outcomes.length - scores.length)],
    ]);

    await page.getByRole("link", { name: "Samples" }).press("Enter");
    await expect.poll(() => shown("Found")).toBe(count(outcomes.length));
    expect(await shown("Mean score")).toBe(figureText(mean));
    await page.getByLabel("Show").selectOption("zeros");
    const zeros = scores.filter((score) => score === 0).length;
    await expect.poll(() => shown("Found")).toBe(`${zeros} of ${count(outcomes.length)}`);

    const [worker = ""] = loop.workerNames;
    await ray.kill(await ray.getActor(worker));
    const [{ pid } = { pid: 0 }] = await ray.state.listActors({
      filters: [["name", "=", "judge"]],
      detail: true,
    });
    process.kill(pid ?? 0, "SIGKILL");
    await expect(ray.get(judge.increment.remote())).rejects.toThrow("SIGKILL");
    await page.getByRole("link", { name: "Actors", exact: true }).press("Enter");
    for (const name of ["judge", worker]) {
      const found = { filters: [["name", "=", name] as const], detail: true };
      await expect
        .poll(async () => (await ray.state.listActors(found)).map(({ state }) => state))
        .toEqual(["DEAD"]);
      const [{ actorId, deathCause } = { actorId: "", deathCause: "" }] =
        await ray.state.listActors(found);
      // The causes of its executors name it, too.
      const row = page.locator("tbody tr", { has: page.getByText(actorId, { exact: true }) });
      await row.getByText("DEAD").waitFor();
      expect(await row.locator("td").allTextContents()).toContain(deathCause);
    }
    await page.getByRole("link", { name: "Overview" }).press("Enter");
    // Executors of the worker die behind it.
    const bothSides = async (): Promise<readonly (readonly (string | null)[])[]> => {
      const { byName } = await ray.state.summarizeActors();
      const inState = (state: string): string =>
        count(Object.values(byName).reduce((sum, states) => sum + (states[state] ?? 0), 0));
      const onPage = [await shown("Actors dead"), await shown("Actors alive")];
      return [onPage, [inState("DEAD"), inState("ALIVE")]];
    };
    await expect
      .poll(bothSides)
      .toSatisfy(([onPage, inSession]) => String(onPage) === String(inSession));
    await expectSound(watched, "scored");
    expect(oddities).toEqual([]);
  });

  test.runIf(
    inFull(
      "it trains for the page; training.test.ts has the data of a run that goes on, and walks over its curves, and page.test.ts has a session that is alive",
    ),
  )("a training is on the page while it runs and afterwards, as in its files", async () => {
    const { url } = await servedSession({ numCpus: 8 });
    const files = await folder();
    const directory = join(files, "run");
    const config = loadTrainerConfig({
      name: "grpo",
      overrides: [
        `rayling.directory=${directory}`,
        `trainer.default_local_dir=${files}/checkpoints`,
        "trainer.logger=file",
        "trainer.total_training_steps=3",
        "trainer.test_freq=1",
        "trainer.log_val_generations=3",
        "rayling.warm_start_steps=0",
        "rayling.task_kwargs.high=12",
        "data.train_batch_size=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      ],
    });
    const watched = await openPage(`${url}#/runs`);
    const { page, oddities } = watched;
    await page.getByText("No training of this session").waitFor();
    const training = runTraining(config);
    // It is there as soon as it has a folder.
    await page.getByRole("checkbox", { name: /run no step|run step/ }).waitFor();
    await training;

    const lines = await linesIn<{ readonly step: number; readonly data: Record<string, number> }>(
      directory,
      "metrics.jsonl",
    );
    const valuesOf = (name: string): readonly number[] => {
      const byStep = new Map(lines.map(({ step, data }) => [step, data[name]]));
      for (const { step, data } of lines) if (name in data) byStep.set(step, data[name]);
      return [...byStep].toSorted(([a], [b]) => a - b).flatMap(([, value]) => value ?? []);
    };
    const name = `${basename(dirname(directory))}/${basename(directory)}`;
    const shown = [
      "critic/score/mean",
      "reward/exposed_wait_s",
      "timing_s/step",
      "training/off_policy/trajectory_staleness/mean",
      "val-core/arithmetic/acc/mean@1",
    ];
    for (const metric of shown) {
      const text = `${metric} by step. ${name}: ${figureText(valuesOf(metric).at(-1))} at step 3`;
      await expect
        .poll(() => page.locator(`[role=img][aria-label^="${metric} "]`).getAttribute("aria-label"))
        .toBe(text);
    }
    const rewards = await linesIn<{ readonly type: string; readonly samples?: number }>(
      directory,
      "timeline.jsonl",
    );
    const samples = rewards.reduce((sum, one) => sum + (one.samples ?? 0), 0);
    const figures = await cellsOf(page, "Figures");
    expect(figures).toContainEqual(["steps", "3"]);
    expect(figures).toContainEqual(["rewards", samples.toLocaleString("en-US")]);
    const phases = rewards.filter(({ type }) => type === "phase").length;
    expect(await page.locator(".phase").count()).toBe(phases);

    await page.getByText("Figures of these steps").click();
    const [took, waited] = [valuesOf("timing_s/step"), valuesOf("reward/exposed_wait_s")];
    const steps = await cellsOf(page, "Steps");
    expect(steps.map((row) => row.slice(0, 3))).toEqual(
      took.map((seconds, at) => [
        String(at + 1),
        duration(1000 * seconds),
        duration(1000 * (waited[at] ?? 0)),
      ]),
    );

    const generations = await linesIn<{
      readonly step: number;
      readonly input: string;
      readonly output: string;
      readonly score: number;
    }>(directory, "generations.jsonl");
    for (const step of new Set(generations.map((one) => one.step))) {
      await page.getByLabel("After step").selectOption(String(step));
      const own = generations.filter((one) => one.step === step);
      await expect
        .poll(() => cellsOf(page, "Answers"))
        .toEqual(own.map(({ score, input, output }) => [figureText(score), input, output || "–"]));
    }
    const commands = await cellsOf(page, "Commands");
    expect(commands.map(([fact]) => fact)).toEqual(
      expect.arrayContaining(["run", "began", "command", "Node", "machine"]),
    );
    await page.getByText("All settings").click();
    expect(await cellsOf(page, "Settings")).toContainEqual(["data.train_batch_size", "4"]);
    await expectSound(watched, "trained");
    expect(oddities).toEqual([]);
  });
});
