/**
 * The oldest Node that every package runs on, checked before anything else of a package runs: packages/build.ts puts this file in front of each. It must run on any
 * Node that reads ES modules, and so must the imports of all files: a name that an older Node does not export is an error before this one can be told. Such names are
 * read from the module itself (`zlib.crc32`).
 */

const oldest = { major: 22, minor: 18 };

const { node, bun, deno } = process.versions;
const [major = 0, minor = 0] = node.split(".").map(Number);
// Others count their versions themselves (shared/refuse-place.ts).
const isNode = bun === undefined && deno === undefined;
if (isNode && (major < oldest.major || (major === oldest.major && minor < oldest.minor))) {
  const error = new Error(
    `rayling needs Node ${oldest.major}.${oldest.minor} or later; this is v${node}`,
  );
  // Where that was found out helps nobody.
  error.stack = `${error.name}: ${error.message}`;
  throw error;
}
