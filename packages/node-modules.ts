/**
 * How the published code gets Node's own modules: from Node itself, past its module loader, which
 * makes a second module of each and reads all that it exports. Most are there already. The others
 * (`late`) take a host as long as half of its own code: each is loaded when something of it is used
 * for the first time.
 *
 * It knows the two forms of imports in this repository, with names in braces and with a default. A
 * module that is imported in another form comes from the module loader.
 */
import { readFile } from "node:fs/promises";
import type { Plugin } from "esbuild";

const late: ReadonlySet<string> = new Set([
  "node:child_process",
  "node:crypto",
  "node:fs/promises",
  "node:http",
  "node:inspector",
  "node:net",
  "node:perf_hooks",
  "node:timers/promises",
  "node:tls",
  "node:v8",
  "node:vm",
  "node:zlib",
]);

export const nodeModules: Plugin = {
  name: "node modules",
  setup(bundler) {
    bundler.onResolve({ filter: /^node:/ }, async ({ path, importer, kind }) => {
      if (kind !== "import-statement" || !importer.endsWith(".ts")) return undefined;
      const names = namesOf(await readFile(importer, "utf8"), path)?.toSorted();
      if (names === undefined || (late.has(path) && names.includes("default"))) return undefined;
      return {
        path: [path, ...names].join(" "),
        namespace: late.has(path) ? "late" : "early",
        pluginData: { path, names },
      };
    });
    bundler.onLoad({ filter: /.*/, namespace: "early" }, ({ pluginData }) => {
      const { path, names } = pluginData as Asked;
      const contents = `const all = process.getBuiltinModule("${path}");
        export const { ${names.filter((one) => one !== "default").join(", ")} } = all;
        export default all;`;
      return { contents };
    });
    // Of CommonJS a bundler reads each name where it stands, every time.
    bundler.onLoad({ filter: /.*/, namespace: "late" }, ({ pluginData }) => {
      const { path, names } = pluginData as Asked;
      const getters = names.map(
        (name) => `get ${name}() { return process.getBuiltinModule("${path}").${name}; }`,
      );
      return { contents: `module.exports = { ${getters.join(", ")} };` };
    });
  },
};

/** The names that one module imports of Node's. */
interface Asked {
  readonly path: string;
  readonly names: readonly string[];
}

/**
 * Returns the names that a module imports of another one, "default" among them; undefined where it
 * is imported in another form.
 */
function namesOf(text: string, from: string): string[] | undefined {
  const form = /^import (?!type )(?:(\w+)(?:, )?)?(?:\{([^}]*)\})? from "([^"]+)";$/gm;
  const found = [...text.matchAll(form)].filter(([, , , path]) => path === from);
  if (found.length === 0) return undefined;
  return found.flatMap(([, whole, names = ""]) => [
    ...(whole === undefined ? [] : ["default"]),
    ...names
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "" && !one.startsWith("type "))
      .map((one) => one.replace(/ as .*/, "")),
  ]);
}
