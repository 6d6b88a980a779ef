/**
 * Builds the page of packages/dashboard into three files, which packages that serve or write the
 * page have in their `dist/page` (`node ../build-page.ts` in the folder of one that build.ts does
 * not build). In the workspace they are made when they are first asked for.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";

const folder = join(import.meta.dirname, "dashboard");
const here = join(folder, "page");

/** Packages that serve or write the page, by folder. */
export const withPage: readonly string[] = ["trainer", "dashboard"];

/** Packages whose code is part of the page. */
const inPage: readonly string[] = ["preact", "uplot"];

/** Returns the texts of index.html, page.js and page.css by name. */
export async function pageTexts(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [
      { in: "src/main.tsx", out: "page" },
      { in: "src/page.css", out: "page" },
    ],
    outdir: "out",
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: ["chrome111", "firefox115", "safari16.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    write: false,
    logLevel: "warning",
  });
  const built = outputFiles.map(({ path, text }) => {
    return [path.slice(path.lastIndexOf("page.")), text] as const;
  });
  const html = await readFile(join(here, "index.html"), "utf8");
  return new Map([["index.html", html], ...built]);
}

/**
 * Writes the page, and the licenses of what is part of it. Replaces each file whole.
 *
 * @param out the `dist` of a package
 * @returns the files, as paths below `out`
 */
export async function writePage(out: string): Promise<string[]> {
  const licenses = inPage.map(async (name) => {
    const text = await readFile(join(folder, "node_modules", name, "LICENSE"), "utf8");
    return [join("licenses", name), text] as const;
  });
  const page = [...(await pageTexts())].map(([name, text]) => [join("page", name), text] as const);
  const files = [...page, ...(await Promise.all(licenses))];
  await Promise.all(
    files.map(async ([path, text]) => {
      await mkdir(dirname(join(out, path)), { recursive: true });
      const whole = join(out, `${path}.${process.pid}`);
      await writeFile(whole, text);
      await rename(whole, join(out, path));
    }),
  );
  return files.map(([path]) => path);
}

if (import.meta.main) await writePage(resolve("dist"));
