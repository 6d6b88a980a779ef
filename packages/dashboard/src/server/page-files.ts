/**
 * The files of the page, read once. They are built into `dist/page` of the package; in the
 * workspace, where sources run as they are, they are built when they are first asked for.
 */
import { readFile } from "node:fs/promises";

interface PageFile {
  readonly type: string;
  readonly text: string;
}

/** Only files of this server, and nothing from the network. */
export const pagePolicy: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const types: Readonly<Record<string, string>> = {
  "index.html": "text/html; charset=utf-8",
  "page.js": "text/javascript; charset=utf-8",
  "page.css": "text/css; charset=utf-8",
};

let loaded: Promise<ReadonlyMap<string, PageFile>> | undefined;

export function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<ReadonlyMap<string, PageFile>> {
  const isSource = import.meta.url.endsWith(".ts");
  const texts = isSource ? await builtNow() : await builtBefore();
  return new Map(
    Object.entries(types).map(([name, type]) => [name, { type, text: texts.get(name) ?? "" }]),
  );
}

async function builtBefore(): Promise<ReadonlyMap<string, string>> {
  const read = Object.keys(types).map(async (name) => {
    return [name, await readFile(new URL(`../page/${name}`, import.meta.url), "utf8")] as const;
  });
  return new Map(await Promise.all(read));
}

/** The build is no part of what is published. */
async function builtNow(): Promise<ReadonlyMap<string, string>> {
  // Put together, so that bundlers do not look for it.
  const builder = new URL(["../../..", "build-page.ts"].join("/"), import.meta.url).href;
  const { pageTexts } = (await import(builder)) as {
    readonly pageTexts: () => Promise<ReadonlyMap<string, string>>;
  };
  return await pageTexts();
}
