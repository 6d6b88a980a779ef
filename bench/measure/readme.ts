/** Writes figures where they are read: between two marks of bench/README.md, and nowhere else. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const path: string = join(import.meta.dirname, "../README.md");

/** @param command names the block: `<!-- begin: command -->` up to the next `<!-- end -->` */
export async function writeBlock(command: string, text: string): Promise<void> {
  const readme = await readFile(path, "utf8");
  const begin = `<!-- begin: ${command} -->\n`;
  const from = readme.indexOf(begin) + begin.length;
  const to = readme.indexOf("<!-- end -->", from);
  if (from < begin.length || to === -1) throw new Error(`${path} has no block "${command}"`);
  await writeFile(path, `${readme.slice(0, from)}\n${text.trim()}\n\n${readme.slice(to)}`);
}
