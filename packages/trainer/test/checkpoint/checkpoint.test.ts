/** Checkpoints come back as they were saved, the last few stay, and what is damaged is found out, told and passed over. */

import { spawnSync } from "node:child_process";
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { makeFolder } from "../../src/values/make-folder.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CheckpointError, resumeCheckpoint, saveCheckpoint } from "../../src/index.ts";
import { folder } from "../data/rows.ts";
import { unfinishedName } from "../../src/checkpoint/durable-files.ts";
import { checkpointOf } from "./states.ts";

const LATEST = "latest_checkpointed_iteration.txt";

const refusal = async (run: Promise<unknown>): Promise<CheckpointError> => {
  const error: unknown = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CheckpointError);
  return error as CheckpointError;
};

async function saved(...steps: number[]): Promise<string> {
  const path = join(await folder(), "checkpoints/project/run");
  for (const step of steps) await saveCheckpoint(checkpointOf(step), { folder: path });
  return path;
}

describe("a checkpoint", () => {
  test("comes back as it was, bit by bit, under verl's names", async () => {
    const path = await saved(20);
    expect((await readdir(path)).toSorted()).toEqual(["global_step_20", LATEST]);
    expect(await readFile(join(path, LATEST), "utf8")).toBe("20");
    const found = await resumeCheckpoint({ folder: path });
    expect(found).toEqual({
      ...checkpointOf(20),
      outstanding: checkpointOf(20).outstanding,
      path: join(path, "global_step_20"),
      passedOver: [],
    });
    const bias = found?.policy.weights["bias"];
    expect([bias?.constructor, Object.is(bias?.[1], -0)]).toEqual([Float32Array, true]);
  });

  test("needs no critic and nothing outstanding, and takes arrays in shared memory", async () => {
    const shared = new Float32Array(new SharedArrayBuffer(8));
    shared.set([1, 2]);
    const path = await folder();
    const checkpoint = {
      globalStep: 0,
      policy: { version: 0, weights: { shared }, optimizer: {} },
      trainer: null,
    };
    await saveCheckpoint(checkpoint, { folder: path });
    const found = await resumeCheckpoint({ folder: path });
    expect(found).toEqual({ ...checkpoint, path: expect.anything() as string, passedOver: [] });
    expect(found?.policy.weights["shared"]?.buffer).toBeInstanceOf(ArrayBuffer);
  });

  test("of the format before is read, and one of a format that is not known refused", async () => {
    const path = await saved(1);
    const manifest = join(path, "global_step_1/manifest.json");
    const text = await readFile(manifest, "utf8");
    await writeFile(manifest, text.replace('"format": 3', '"format": 2'));
    expect(await resumeCheckpoint({ folder: path })).toMatchObject(checkpointOf(1));
    await writeFile(manifest, text.replace('"format": 3', '"format": 4'));
    const error = await refusal(resumeCheckpoint({ folder: path }));
    expect(error.message).toContain("is of the format 4, and 2 and 3 are those known here");
  });

  test("replaces the one of the same step", async () => {
    const path = await saved(20, 20);
    await saveCheckpoint({ ...checkpointOf(20), trainer: "other" }, { folder: path });
    expect(await readdir(path)).toHaveLength(2);
    expect(await resumeCheckpoint({ folder: path })).toMatchObject({ trainer: "other" });
  });

  test.each([
    [{ globalStep: 1.5 }, /there is no step 1\.5/],
    [{ trainer: { at: new URL("a:b") } }, /trainer cannot be kept: \$\.at is an instance of URL/],
    [{ outstanding: [{ run: () => 1 }] }, /outstanding cannot be kept: \$\[0\]\.run is a function/],
    [
      { policy: { version: 1, weights: { __metadata__: new Float32Array(1) }, optimizer: {} } },
      /the policy cannot be kept: .*__metadata__/,
    ],
  ])("that cannot be kept (%j) is refused, and nothing is there", async (change, message) => {
    const path = await folder();
    const error = await refusal(
      saveCheckpoint({ ...checkpointOf(1), ...change }, { folder: path }),
    );
    expect(error.code).toBe("CHECKPOINT_BAD_VALUE");
    expect(error.message).toMatch(message);
    expect(await readdir(path)).toEqual([]);
  });

  test("that finds no room is refused, and the one before is still the latest", async () => {
    const path = await saved(1);
    await writeFile(join(path, "file"), "");
    const inFile = saveCheckpoint(checkpointOf(2), { folder: join(path, "file") });
    expect(await refusal(inFile)).toMatchObject({ code: "CHECKPOINT_IO" });
    expect(await resumeCheckpoint({ folder: path })).toMatchObject({ globalStep: 1 });
  });
});

describe("the last ones", () => {
  const stepsIn = async (path: string): Promise<string[]> =>
    (await readdir(path)).filter((name) => name.startsWith("global")).toSorted();

  test("stay, as many as are to be kept, and others' files", async () => {
    const path = await saved(8, 9, 10, 11);
    await writeFile(join(path, "notes.txt"), "mine");
    await saveCheckpoint(checkpointOf(12), { folder: path, keep: 3 });
    expect(await stepsIn(path)).toEqual(["global_step_10", "global_step_11", "global_step_12"]);
    expect(await readFile(join(path, "notes.txt"), "utf8")).toBe("mine");
  });

  test("are saved with what a process that is gone left half done swept away, not what one does now", async () => {
    const path = await saved(8);
    const left = spawnSync(process.execPath, ["--version"]).pid;
    const of = (pid: number, name: string): string =>
      join(path, unfinishedName(name).replace(`.${process.pid}-`, `.${pid}-`));
    await mkdir(of(left, "global_step_9"));
    await writeFile(of(left, LATEST), "9");
    // In a container the next process has the number of the last.
    const before = join(path, `global_step_9.${process.pid}-oneofold-1.unfinished`);
    await mkdir(before);
    const present = of(process.ppid, LATEST);
    await writeFile(present, "9");
    await saveCheckpoint(checkpointOf(10), { folder: path });
    expect((await readdir(path)).filter((name) => name.endsWith(".unfinished"))).toEqual([
      basename(present),
    ]);
  });

  test("are those up to this one: later ones are of another run, and stay", async () => {
    const path = await saved(10, 20, 30);
    await saveCheckpoint(checkpointOf(15), { folder: path, keep: 1 });
    expect(await stepsIn(path)).toEqual(["global_step_15", "global_step_20", "global_step_30"]);
    expect(await resumeCheckpoint({ folder: path })).toMatchObject({ globalStep: 15 });
  });

  test.each([0, -1, 1.5])("cannot be %d", async (keep) => {
    const path = await folder();
    const error = await refusal(saveCheckpoint(checkpointOf(1), { folder: path, keep }));
    expect(error.code).toBe("CHECKPOINT_BAD_VALUE");
  });
});

describe("auto", () => {
  test("begins at the beginning where there is nothing", async () => {
    expect(await resumeCheckpoint({ folder: join(await folder(), "none") })).toBeUndefined();
    expect(await resumeCheckpoint({ folder: await folder() })).toBeUndefined();
  });

  test("takes the one that the file names, and the latest one without the file", async () => {
    const path = await saved(9, 10, 11);
    await writeFile(join(path, LATEST), "10\n");
    expect(await resumeCheckpoint({ folder: path })).toMatchObject({ globalStep: 10 });
    await rm(join(path, LATEST));
    expect(await resumeCheckpoint({ folder: path })).toMatchObject({ globalStep: 11 });
  });

  test("passes over a file that names nothing, and says so", async () => {
    const path = await saved(9, 10);
    await writeFile(join(path, LATEST), "\0\0");
    const found = await resumeCheckpoint({ folder: path });
    expect(found).toMatchObject({ globalStep: 10, passedOver: [{ code: "CHECKPOINT_DAMAGED" }] });
  });

  const files = [
    "actor/weights.safetensors",
    "actor/optimizer.safetensors",
    "critic/weights.safetensors",
    "trainer.json",
    "outstanding.jsonl",
    "outstanding.safetensors",
    "manifest.json",
  ];
  const damages: Readonly<Record<string, (path: string) => Promise<void>>> = {
    "cut off": async (path) => truncate(path, Math.floor((await readFile(path)).length / 2)),
    empty: async (path) => truncate(path, 0),
    gone: (path) => rm(path),
    "longer by a byte": async (path) => writeFile(path, "x", { flag: "a" }),
    "changed in one bit": async (path) => {
      const bytes = await readFile(path);
      const at = Math.floor(bytes.length * 0.6);
      bytes[at] = (bytes[at] as number) ^ 1;
      await writeFile(path, bytes);
    },
  };

  // Saving is slow, copying is not.
  let whole: string;
  beforeAll(async () => {
    whole = await mkdtemp(join(tmpdir(), "rayling-trainer-"));
    for (const step of [1, 2]) await saveCheckpoint(checkpointOf(step), { folder: whole });
  });
  afterAll(() => rm(whole, { recursive: true }));

  test.each(files.flatMap((file) => Object.keys(damages).map((damage) => [file, damage] as const)))(
    "finds %s %s, says so, and takes the one before",
    async (file, damage) => {
      const path = await folder();
      await cp(whole, path, { recursive: true });
      const damaged = join(path, "global_step_2");
      await damages[damage]?.(join(damaged, file));
      const found = await resumeCheckpoint({ folder: path });
      expect(found).toMatchObject({ ...checkpointOf(1), path: join(path, "global_step_1") });
      expect(found?.passedOver).toMatchObject([
        { code: "CHECKPOINT_DAMAGED", path: expect.stringContaining(damaged) as string },
      ]);
    },
  );

  test("takes a folder with another's name, or a part of one, for damaged, not for a beginning", async () => {
    const path = await saved(1);
    await rename(join(path, "global_step_1"), join(path, "global_step_3"));
    const gone = await refusal(resumeCheckpoint({ folder: path }));
    expect(gone.message).toMatch(
      /none of its checkpoints up to step 1, which latest_checkpointed_iteration.txt names, is whole.*global_step_1.*disable.*resume_path.*global_step_3$/,
    );
    await rm(join(path, "global_step_3"), { recursive: true });
    const none = await refusal(resumeCheckpoint({ folder: path }));
    expect(none.message).toMatch(/none of its checkpoints is whole.*global_step_1.*disable/);
    expect(await resumeCheckpoint({ folder: path, mode: "disable" })).toBeUndefined();
  });
});

describe("resume_path", () => {
  const resume = (path: string | undefined): Promise<unknown> =>
    resumeCheckpoint({ folder: "unused", mode: "resume_path", path });

  test("takes that one", async () => {
    const path = await saved(1, 2);
    const one = join(path, "global_step_1/");
    expect(await resume(one)).toMatchObject({ globalStep: 1 });
    // Also where it is the only thing that is said.
    expect(await resumeCheckpoint({ folder: path, path: one })).toMatchObject({ globalStep: 1 });
  });

  test("does not take another one instead", async () => {
    const path = await saved(1, 2);
    await rm(join(path, "global_step_2/trainer.json"));
    expect(await refusal(resume(join(path, "global_step_2")))).toMatchObject({
      code: "CHECKPOINT_DAMAGED",
      message: expect.stringContaining("trainer.json: cannot be read: ENOENT") as string,
    });
  });

  test("says what it has to be, and that it is not there", async () => {
    const path = await saved(1);
    expect(await refusal(resume(undefined))).toMatchObject({ code: "CHECKPOINT_BAD_PATH" });
    expect(await refusal(resume(path))).toMatchObject({
      code: "CHECKPOINT_BAD_PATH",
      message: expect.stringContaining("must be the path of a folder global_step_N") as string,
    });
    const missing = join(path, "global_step_2");
    expect(await refusal(resume(missing))).toMatchObject({
      code: "CHECKPOINT_NOT_FOUND",
      message: `${missing}: there is no such folder`,
    });
  });
});

test("a checkpoint may be copied elsewhere", async () => {
  const path = await saved(5);
  const other = join(await folder(), "global_step_5");
  await cp(join(path, "global_step_5"), other, { recursive: true });
  const found = await resumeCheckpoint({ folder: "unused", mode: "resume_path", path: other });
  expect(found).toMatchObject(checkpointOf(5));
});

describe("a folder is made", () => {
  test("with those above it, once, and not where a file is", async () => {
    const base = await folder();
    const path = join(base, "a/b/c");
    await Promise.all([makeFolder(path), makeFolder(path), makeFolder(join(base, "a/b/d"))]);
    await makeFolder(path);
    expect((await readdir(join(base, "a/b"))).toSorted()).toEqual(["c", "d"]);
    await writeFile(join(path, "file"), "");
    await expect(makeFolder(join(path, "file"))).rejects.toMatchObject({ code: "EEXIST" });
    await expect(makeFolder(join(path, "file/d"))).rejects.toMatchObject({ code: "ENOTDIR" });
  });

  // Node's recursive mkdir never ends there, and on a read-only file system it says ENOENT.
  test.runIf(process.platform === "linux")(
    "or the first level that cannot be made is named",
    async () => {
      await expect(makeFolder("/proc/rayling-none/a/b")).rejects.toMatchObject({
        path: "/proc/rayling-none",
      });
    },
  );
});
