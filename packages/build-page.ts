/**
 * Builds the live page of packages/dashboard into three files: `node ../build-page.ts` in the package's folder writes them to `dist/page`. In the workspace the server makes them
 * when they are first asked for.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const folder = join(import.meta.dirname, "dashboard");
const here = join(folder, "page");

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
 * Replaces each file whole.
 *
 * @param out the package's `dist`
 * @returns the files, as paths below `out`
 */
export async function writePage(out: string): Promise<string[]> {
  const files = [...(await pageTexts())];
  await mkdir(join(out, "page"), { recursive: true });
  await Promise.all(
    files.map(async ([name, text]) => {
      const whole = join(out, "page", `${name}.${process.pid}`);
      await writeFile(whole, text);
      await rename(whole, join(out, "page", name));
    }),
  );
  return files.map(([name]) => join("page", name));
}

if (import.meta.main) await writePage(join(folder, "dist"));
