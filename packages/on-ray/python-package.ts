/**
 * Copies the Python package that machines of Ray get into `dist/python`. Before this package is
 * published: `node python-package.ts`.
 */
import { cp } from "node:fs/promises";
import { join } from "node:path";

const source = join(import.meta.dirname, "../../python/src/rayling");

await cp(source, join(import.meta.dirname, "dist/python/rayling"), {
  recursive: true,
  filter: (path) => !/(?:__pycache__|_js)$/.test(path),
});
