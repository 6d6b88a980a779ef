/** What real Hydra and OmegaConf make of values, overrides, references and lists of defaults (golden/make.py asked them), and what we do. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  applyOverrides,
  ConfigError,
  type ConfigTree,
  composeConfig,
  parseOverride,
  resolveReferences,
  yamlText,
  yamlValue,
} from "@rayling/config-tree";

interface Golden {
  readonly values: readonly {
    readonly text: string;
    readonly value?: unknown;
    readonly refused?: true;
  }[];
  readonly compositions: readonly {
    readonly base: ConfigTree;
    readonly overrides: readonly string[];
    readonly result?: ConfigTree;
    readonly refused?: string;
  }[];
  readonly references: readonly {
    readonly tree: ConfigTree;
    readonly result?: ConfigTree;
    readonly refused?: string;
  }[];
  readonly yaml: readonly {
    readonly text: string;
    readonly value?: ConfigTree;
    readonly refused?: true;
  }[];
  readonly defaults: readonly {
    readonly title: string;
    readonly files: Readonly<Record<string, string>>;
    readonly overrides: readonly string[];
    readonly result?: ConfigTree;
    readonly refused?: string;
  }[];
}

const golden = JSON.parse(
  readFileSync(new URL("golden/hydra.json", import.meta.url), "utf8"),
  // JSON has neither infinity nor NaN.
  (_key, value: unknown) =>
    typeof value === "object" && value !== null && "$number" in value
      ? Number(value.$number)
      : value,
) as Golden;

/** Whatever else is thrown is a fault. */
function answerOf(run: () => unknown): { readonly value: unknown } | "refused" {
  try {
    return { value: run() };
  } catch (error) {
    if (error instanceof ConfigError) return "refused";
    throw error;
  }
}

/** The value with keys as pairs, because toEqual does not compare the order of keys. */
function ordered(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value)
    ? value.map(ordered)
    : Object.entries(value).map(([key, inside]) => [key, ordered(inside)]);
}

describe("values", () => {
  test("are read as Hydra reads them", () => {
    const wrong = golden.values.flatMap(({ text, value, refused }) => {
      const ours = answerOf(() => parseOverride(`a=${text}`).value);
      const theirs = refused === true ? "refused" : { value };
      try {
        expect(ours).toEqual(theirs);
        return [];
      } catch {
        return [{ text, ours, theirs }];
      }
    });
    expect(wrong).toEqual([]);
    expect(golden.values.length).toBeGreaterThan(400);
  });
});

describe("overrides", () => {
  test("change what they change in Hydra, and leave keys in their order", () => {
    const wrong = golden.compositions.flatMap(({ base, overrides, result, refused }) => {
      const ours = answerOf(() => applyOverrides(base, overrides));
      const theirs = refused === undefined ? { value: result } : "refused";
      try {
        expect(ordered(ours)).toEqual(ordered(theirs));
        return [];
      } catch {
        return [{ base, overrides, ours, theirs, refused }];
      }
    });
    expect(wrong).toEqual([]);
  });
});

describe("references", () => {
  test.each(golden.references)("$tree", ({ tree, result, refused }) => {
    const environment = { RAYLING_GOLDEN: "from outside" };
    const ours = answerOf(() => resolveReferences(tree, { environment }));
    expect(ours).toEqual(refused === undefined ? { value: result } : "refused");
  });
});

describe("lists of defaults", () => {
  test.each(golden.defaults)("$title $overrides", async ({ files, overrides, result, refused }) => {
    const folder = await mkdtemp(join(tmpdir(), "config-tree-"));
    try {
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), text);
      }
      const ours = answerOf(() => {
        const { tree, overrides: rest } = composeConfig("main", { folders: [folder] }, overrides);
        return resolveReferences(applyOverrides(tree, rest));
      });
      expect(ordered(ours)).toEqual(ordered(refused === undefined ? { value: result } : "refused"));
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

const stores = { "db/my.yaml": "name: my\n", "db/pg.yaml": "name: pg\n" };

describe("a choice that cannot be made", () => {
  test.each([
    [
      "is misspelt in a file",
      { "main.yaml": "defaults: [{db: my}, _self_, {override dbb: pg}]\n" },
      [],
      "main.yaml: defaults: has override dbb: pg, and nothing in the lists of defaults chooses one of dbb; did you mean db?",
    ],
    [
      "lacks its place",
      { "main.yaml": "defaults: [{db@src: my}, _self_, {override db: pg}]\n" },
      [],
      "did you mean db@src?",
    ],
    [
      "comes too late",
      {
        "main.yaml": "defaults: [{exp: e}, {db: my}]\n",
        "exp/e.yaml": "# @package _global_\ndefaults: [{override /db: pg}]\n",
      },
      [],
      "e.yaml: defaults: has override db: pg, which comes too late: list the file behind the entry that it changes",
    ],
    [
      "is there twice",
      { "main.yaml": "defaults: [{db: my}, {db: pg}]\n" },
      [],
      'main.yaml: defaults: has db: my beside db: pg; "override db: NAME" at the end of a list chooses another',
    ],
    [
      "is added twice",
      { "main.yaml": "defaults: [{db: my}]\n" },
      ["+db=pg"],
      "db: is chosen already: db=pg chooses another",
    ],
    [
      "is left open",
      { "main.yaml": "defaults: [{db: '???'}]\n" },
      [],
      "main.yaml: defaults: leaves the choice of db open; choose one of my, pg by db=my",
    ],
    [
      "removes nothing",
      { "main.yaml": "defaults: [{db@src: my}]\n" },
      ["~db"],
      "db: nothing in the lists of defaults chooses one of db, so that ~db removes nothing; did you mean db@src?",
    ],
    [
      "stands before another entry",
      { "main.yaml": "defaults: [{override db: pg}, {db: my}]\n" },
      [],
      "main.yaml: defaults: has db behind an override; overrides stand at the end of the list",
    ],
  ])("%s", async (_title, files, overrides, problem) => {
    const folder = await mkdtemp(join(tmpdir(), "config-tree-"));
    try {
      for (const [path, text] of Object.entries({ ...stores, ...files })) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), text);
      }
      const compose = () => composeConfig("main", { folders: [folder] }, overrides);
      expect(compose).toThrow(ConfigError);
      expect(compose).toThrow(problem);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("YAML", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "config-tree-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test("is read as OmegaConf reads it, and written so that both read the same", async () => {
    const path = join(folder, "main.yaml");
    const wrong: unknown[] = [];
    for (const { text, value, refused } of golden.yaml) {
      await writeFile(path, text);
      const ours = answerOf(() => composeConfig("main", { folders: [folder] }).tree);
      const theirs = refused === true ? "refused" : { value };
      try {
        expect(ours).toEqual(theirs);
        if (ours !== "refused") expect(yamlValue(yamlText(ours.value))).toEqual(ours.value);
      } catch {
        wrong.push({ text, ours, theirs });
      }
    }
    expect(wrong).toEqual([]);
    expect(golden.yaml.length).toBeGreaterThan(150);
  });

  test("texts that look like other values are quoted, for readers of YAML 1.1 and 1.2", () => {
    const texts = ["yes", "off", "010", "0o17", "1_000", "1:30", "1e5", "1.5", "null", "<<", "a b"];
    const text = yamlText(texts);
    expect(yamlValue(text)).toEqual(texts);
    expect(parse(text)).toEqual(texts);
    expect(parse(text, { version: "1.1" })).toEqual(texts);
  });

  test("a whole number that would be rounded is refused by its line", async () => {
    await writeFile(join(folder, "main.yaml"), "a: 1\nb: 9007199254740993\n");
    expect(() => composeConfig("main", { folders: [folder] })).toThrow(
      /main\.yaml: is no YAML: 9007199254740993 is a whole number that cannot be held; quote it, for a text at line 2/,
    );
  });
});

test("a key that is a number is a text, as every key", async () => {
  const folder = await mkdtemp(join(tmpdir(), "config-tree-"));
  try {
    await writeFile(join(folder, "main.yaml"), "a: { 1: one, true: yes }\n");
    const { tree } = composeConfig("main", { folders: [folder] });
    expect(tree).toEqual({ a: { "1": "one", true: true } });
  } finally {
    await rm(folder, { recursive: true });
  }
});

describe("what never ends", () => {
  test("a text that doubles forty times is refused by its key", () => {
    const tree: ConfigTree = { k0: "some text" };
    for (let index = 1; index <= 40; index++)
      tree[`k${index}`] = `\${k${index - 1}}\${k${index - 1}}`;
    expect(() => resolveReferences(tree)).toThrow(
      /^k\d+: has more than 100000 values|is a text of more than/,
    );
  });

  test("a section that doubles forty times is refused by its key", () => {
    const tree: ConfigTree = { k0: { x: 1 } };
    for (let index = 1; index <= 40; index++) {
      tree[`k${index}`] = { a: `\${k${index - 1}}`, b: `\${k${index - 1}}` };
    }
    expect(() => resolveReferences(tree)).toThrow(/^k\d+\S*: has more than 100000 values/);
  });

  test.each([
    ["a: &x\n  b:\n    c: *x\n", "its key a.b.c contains itself"],
    ["a: &x [1, *x]\n", "its key a.1 contains itself"],
    [
      `a0: &a0 [1, 2]\n${Array.from({ length: 30 }, (_, index) => `a${index + 1}: &a${index + 1} [*a${index}, *a${index}]\n`).join("")}`,
      "is no YAML: Excessive alias count",
    ],
  ])("a file of %j", async (text, problem) => {
    const folder = await mkdtemp(join(tmpdir(), "config-tree-"));
    try {
      const path = join(folder, "main.yaml");
      await writeFile(path, text);
      const message = (() => {
        try {
          composeConfig("main", { folders: [folder] });
        } catch (error) {
          return (error as Error).message;
        }
        return "";
      })();
      expect(message).toContain(path);
      expect(message).toContain(problem);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
