/**
 * Writes the package that machines of Ray get: the Python package with its JavaScript runtime.
 * Before this package is published: `node python-package.ts [FILE]`.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makePythonPackage } from "./src/jobs/runtime-packages.ts";

const file = process.argv[2] ?? join(import.meta.dirname, "dist/jobs/python.zip");
await writeFile(file, await makePythonPackage());
