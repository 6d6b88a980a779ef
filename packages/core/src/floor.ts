/**
 * The oldest Node that every package runs on, checked before anything else of a package runs: packages/build.ts puts this file in front of each. It must run on any
 * Node that reads ES modules, and so must the imports of all files: a name that an older Node does not export is an error before this one can be told. Such names are
 * read from the module itself (`zlib.crc32`).
 */

/** `major.minor`. */
export const oldestNode: string = "22.18";

const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split(".").map(Number);
const { node, bun, deno } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
// Others count their versions themselves (shared/refuse-place.ts).
const isNode = bun === undefined && deno === undefined;
if (isNode && (major < oldestMajor || (major === oldestMajor && minor < oldestMinor))) {
  const error = new Error(`rayling needs Node ${oldestNode} or later; this is v${node}`);
  // Where that was found out helps nobody.
  error.stack = `${error.name}: ${error.message}`;
  throw error;
}
