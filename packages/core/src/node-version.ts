/**
 * Checks the version of Node before anything else of a package runs: packages/build.ts puts this
 * file in front of every published entry.
 *
 * This file and the imports of all files must load on any Node that reads ES modules. An import of
 * a name that an older Node does not export fails before this check runs, so such names are read
 * from the module itself (`zlib.crc32`).
 */

/** The oldest Node that every package runs on, as `major.minor`. */
export const oldestNode: string = "22.18";

const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split(".").map(Number);
const { node, bun, deno } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
// Bun and Deno have version numbers of their own; machine/refuse-place.ts refuses them.
const isNode = bun === undefined && deno === undefined;
if (isNode && (major < oldestMajor || (major === oldestMajor && minor < oldestMinor))) {
  const error = new Error(`rayling needs Node ${oldestNode} or later; this is v${node}`);
  // The stack points into this file, which does not help the reader.
  error.stack = `${error.name}: ${error.message}`;
  throw error;
}
