/**
 * What `require("rayling")` gives where Node, or what stands in its place, does not choose the ES module itself: Node before 20.19, jest. It is the same module, or one
 * line that says what is needed.
 */
try {
  module.exports = require("./index.js");
} catch (error) {
  const { engines } = require("../package.json") as { readonly engines: { readonly node: string } };
  const needed = engines.node.replace(">=", "");
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [oldest = 0, least = 0] = needed.split(".").map(Number);
  if (major < oldest || (major === oldest && minor < least)) {
    throw short(`rayling needs Node ${needed} or later; this is ${process.version}`);
  }
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== "ERR_REQUIRE_ESM" && !/must use import to load es module/i.test(message))
    throw error;
  throw short(
    "rayling is an ES module, and this loader cannot require one. Under jest: run Node 24.9 or later with NODE_OPTIONS=--experimental-vm-modules, or write the test as an ES module (.mjs) and import rayling",
  );
}

/** Where that was found out helps nobody. */
function short(text: string): Error {
  const error = new Error(text);
  error.stack = `Error: ${text}`;
  return error;
}
