/** `rayling new` on folders and names; test/workspace/packed.test.ts runs the project that it makes. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folder, inProcess, startIn } from "./command.ts";

test("an empty folder becomes a project that is called like it", async () => {
  const project = join(await folder(), "my-judge");
  await mkdir(project);
  const { code, stdout } = await inProcess("new", project);
  expect(code).toBe(0);
  expect(stdout).toContain(`cd ${project}`);
  const files = await readdir(project);
  expect(files.filter((name) => /^[_.]|package/.test(name)).toSorted()).toEqual([
    ".gitignore",
    "package.json",
  ]);
  expect(files).toEqual(expect.arrayContaining(["rule.ts", "judge.ts", "tally.ts", "test"]));
  expect(JSON.parse(await readFile(join(project, "package.json"), "utf8"))).toMatchObject({
    name: "my-judge",
  });
  expect(await readFile(join(project, "README.md"), "utf8")).toMatch(/^# my-judge$/m);
  // Places for values of the judge's prompt stay.
  expect(await readFile(join(project, "judge.ts"), "utf8")).toContain("{{answer}}");
});

test("a folder with files, a file, and a name that npm does not take are refused", async () => {
  const place = await folder();
  await writeFile(join(place, "notes.txt"), "mine");
  const refused = async (path: string): Promise<string> => {
    const { code, stderr } = await inProcess("new", path);
    expect(code).toBe(2);
    return stderr;
  };
  await mkdir(join(place, "full"));
  await writeFile(join(place, "full", "mine.txt"), "mine");
  expect(await refused(join(place, "full"))).toContain("is not empty");
  expect(await refused(join(place, "notes.txt"))).toContain("notes.txt");
  expect(await refused(join(place, "My Judge"))).toContain("My Judge cannot be the name");
  expect(await refused(join(place, "favicon.ico"))).toContain("favicon.ico cannot be the name");
  expect(await refused(join(place, "node_modules"))).toContain("no TypeScript");
  expect(await refused(join(place, "node_modules", "judge"))).toContain("no TypeScript");
  expect((await readdir(place)).toSorted()).toEqual(["full", "notes.txt"]);
});

test("an empty name is refused, and leaves the files of the current folder as they are", async () => {
  const place = join(await folder(), "mine");
  await mkdir(place);
  await writeFile(join(place, "package.json"), "mine");
  const { code, stderr } = await startIn(place, "new", "").ended;
  expect([code, stderr]).toEqual([2, expect.stringContaining("The name is empty")]);
  expect(await readdir(place)).toEqual(["package.json"]);
  expect(await readFile(join(place, "package.json"), "utf8")).toBe("mine");
});
