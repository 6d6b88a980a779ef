/** Links of the pages lead somewhere: to a file of the repository, and to a heading of it. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source.ts";

const pages = globSync(
  [
    "*.md",
    "{bench,docs,examples,python,test}/**/*.md",
    "packages/*/*.md",
    "packages/*/test/**/*.md",
  ],
  { cwd: root, exclude: (path) => path.endsWith("node_modules") },
).toSorted();

/** What an npm package has of its folder, beside what is built. */
const readmes = pages.filter((page) => /^packages\/[^/]+\/README\.md$/.test(page));

interface Link {
  /** From the root; empty: the page itself. */
  readonly path: string;
  readonly heading: string | undefined;
}

const textOf = (page: string): string => readFileSync(join(root, page), "utf8");
const withoutCode = (text: string): string =>
  text.replaceAll(/^```.*?^```/gms, "").replaceAll(/`[^`\n]+`/g, "code");

function linksOf(page: string): Link[] {
  const found = [...withoutCode(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)];
  return found
    .map((match) => match[1] ?? "")
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = "", heading] = link.split("#");
      return { path: path === "" ? page : normalize(join(dirname(page), path)), heading };
    });
}

/** As GitHub and npm name headings. */
function headingsOf(page: string): string[] {
  const headings = [...textOf(page).matchAll(/^#+ (.*)$/gm)].map((match) => match[1] ?? "");
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("there are links", () => {
  expect(pages.flatMap(linksOf).length).toBeGreaterThan(50);
});

test.each(pages)("the links of %s lead somewhere", (page) => {
  const dead = linksOf(page).filter(
    ({ path, heading }) =>
      !existsSync(join(root, path)) ||
      (heading !== undefined && !headingsOf(path).includes(heading)),
  );
  expect(dead).toEqual([]);
});

/** Paths that a page names as code; a path of a file that a reader is to write begins with my-. */
function pathsOf(page: string): string[] {
  const named = [
    ...textOf(page).matchAll(/`((?:bench|docs|examples|packages|python|test)\/[^`\s*<]+)`/g),
  ];
  return named.map((match) => match[1] ?? "").filter((path) => !path.includes("/my-"));
}

test("paths that pages name are there", () => {
  const paths = pages.flatMap((page) => pathsOf(page).map((path) => ({ page, path })));
  expect(paths.length).toBeGreaterThan(50);
  expect(paths.filter(({ path }) => !existsSync(join(root, path)))).toEqual([]);
});

test.each(readmes)("the links of %s lead somewhere on npm, too", (page) => {
  const leaving = linksOf(page).filter(({ path }) => path !== page);
  expect(leaving).toEqual([]);
});
