/**
 * Script and style sheet of the page, read once. They are built into `dist/page` of the package; in
 * the workspace, where sources run as they are, they are built when they are first asked for.
 */

import { readFile } from "node:fs/promises";
import { isSource, ownFile } from "../../values/own-files.ts";

const names = ["page.js", "page.css"] as const;

/** Texts of the page by the names of their files. */
export type PageParts = Readonly<Record<(typeof names)[number], string>>;

let loaded: Promise<PageParts> | undefined;

export function pageParts(): Promise<PageParts> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<PageParts> {
  const [script = "", style = ""] = await Promise.all(isSource ? builtNow() : builtBefore());
  return { "page.js": script, "page.css": style };
}

function builtBefore(): Promise<string>[] {
  return names.map((name) => readFile(ownFile(`dist/page/${name}`), "utf8"));
}

/** The build is no part of what is published. */
function builtNow(): Promise<string>[] {
  const builder = ownFile("../build-page.ts").href;
  const texts: Promise<ReadonlyMap<string, string>> = import(builder).then(
    ({ pageTexts }: { readonly pageTexts: () => Promise<ReadonlyMap<string, string>> }) =>
      pageTexts(),
  );
  return names.map(async (name) => (await texts).get(name) ?? "");
}
