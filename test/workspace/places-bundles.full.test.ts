/**
 * Bundles by esbuild, vite, rolldown and webpack, on the packed tarballs and run for real: those that leave rayling out work like any script, one that holds it says in
 * one line how to. Full suite only: the tools are to be fetched; test/core/identity.test.ts has programs of one file in the gate.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectReports, makeProject, type Project } from "./places.ts";
import { root } from "./source.ts";

const tools = { esbuild: "0.28.2", rolldown: "1.3.2", vite: "8.3.8", webpack: "5.112.2" };

/** What keeps rayling out of a bundle. docs/bundlers.md and the error say these very lines. */
const external = {
  esbuild: 'external: ["rayling", "@rayling/*"]',
  vite: 'ssr: { external: ["rayling", "@rayling/core"] }',
  rolldown: "external: [/^@?rayling/]",
  webpack: "externals: [/^@?rayling/]",
  webpackCommon: 'externalsType: "commonjs"',
} as const;

let project: Project;
beforeAll(async () => {
  project = await makeProject(tools);
  await project.write({
    "brief.mjs":
      'process.on("uncaughtException", ({ message }) => { console.error(message); process.exit(1); });\n',
    "strip.cjs": 'module.exports = (text) => require("node:module").stripTypeScriptTypes(text);\n',
  });
}, 600_000);
afterAll(() => project.remove());

const esbuild = (options: string, leaves: string = external.esbuild): string =>
  `import { build } from "esbuild";
await build({ bundle: true, platform: "node", target: "node22", logLevel: "error", ${leaves === "" ? "" : `${leaves}, `}${options} });
`;
const vite = (
  options: string,
  leaves = external.vite.replace("{ ", "{ noExternal: true, "),
): string =>
  `import { build } from "vite";
await build({ configFile: false, logLevel: "error", ${leaves === "" ? "" : `${leaves}, `}build: { ssr: "app/main.ts", ${options} } });
`;
const rolldown = (entry: string, options: string, leaves: string = external.rolldown): string =>
  `import { rolldown } from "rolldown";
const bundle = await rolldown({ input: "app/${entry}.ts", platform: "node", ${leaves} });
await bundle.write({ ${options} });
`;
const webpack = (options: string, output: string, leaves: string = external.webpack): string =>
  `import { promisify } from "node:util";
import webpack from "webpack";
const stats = await promisify(webpack)({
  target: "node22", ${leaves === "" ? "" : `${leaves}, `}${options}, output: { path: process.cwd() + "/out", ${output} },
  module: { rules: [{ test: /\\.ts$/, loader: process.cwd() + "/strip.cjs" }] },
});
if (stats.hasErrors()) throw new Error(stats.toString());
`;
const asModule = 'entry: "./app/main.ts", experiments: { outputModule: true }';
const moduleIn = (file: string): string =>
  `filename: "${file}", module: true, chunkFormat: "module"`;
const asCommon = 'format: "cjs", entryFileNames: "[name].cjs", chunkFileNames: "[name].cjs"';

interface Bundle {
  readonly script: string;
  /** What is run. */
  readonly main: string;
  /** With source maps, stacks name the sources. */
  readonly hasMap?: true;
  /** What is imported late has a file of its own, which hosts load. */
  readonly hasChunks?: true;
}

const without: Readonly<Record<string, Bundle>> = {
  "esbuild, ES module in one file, with a map": {
    script: esbuild(
      'entryPoints: ["app/main.ts"], format: "esm", sourcemap: true, outfile: "out/es.mjs"',
    ),
    main: "out/es.mjs",
    hasMap: true,
  },
  "esbuild, minified": {
    script: esbuild(
      'entryPoints: ["app/main.ts"], format: "esm", minify: true, outfile: "out/es-min.mjs"',
    ),
    main: "out/es-min.mjs",
  },
  "esbuild, in chunks, minified, with maps": {
    script: esbuild(
      'entryPoints: ["app/main.ts"], format: "esm", minify: true, splitting: true, sourcemap: true, outdir: "out/es-split"',
    ),
    main: "out/es-split/main.js",
    hasMap: true,
    hasChunks: true,
  },
  "esbuild, CommonJS, with a map": {
    script: esbuild(
      'entryPoints: ["app/main-function.ts"], format: "cjs", sourcemap: true, outfile: "out/es.cjs"',
    ),
    main: "out/es.cjs",
    hasMap: true,
  },
  "esbuild, CommonJS, minified": {
    script: esbuild(
      'entryPoints: ["app/main-function.ts"], format: "cjs", minify: true, outfile: "out/es-min.cjs"',
    ),
    main: "out/es-min.cjs",
  },
  "vite ssr, all but rayling in the bundle, with maps": {
    script: vite('outDir: "out/vite", sourcemap: true'),
    main: "out/vite/main.js",
    hasMap: true,
    hasChunks: true,
  },
  "vite ssr, minified": {
    script: vite('outDir: "out/vite-min", minify: true'),
    main: "out/vite-min/main.js",
    hasChunks: true,
  },
  "vite ssr, as it is without any setting": {
    script: vite('outDir: "out/vite-default"', ""),
    main: "out/vite-default/main.js",
    hasChunks: true,
  },
  "rolldown, with maps": {
    script: rolldown("main", 'dir: "out/rolldown", format: "esm", sourcemap: true'),
    main: "out/rolldown/main.js",
    hasMap: true,
    hasChunks: true,
  },
  "rolldown, minified": {
    script: rolldown("main", 'dir: "out/rolldown-min", format: "esm", minify: true'),
    main: "out/rolldown-min/main.js",
    hasChunks: true,
  },
  "rolldown, CommonJS": {
    script: rolldown("main-function", `dir: "out/rolldown-cjs", ${asCommon}`),
    main: "out/rolldown-cjs/main-function.cjs",
    hasChunks: true,
  },
  "webpack, minified, with a map": {
    script: webpack(
      `mode: "production", devtool: "source-map", ${asModule}`,
      moduleIn("webpack.mjs"),
    ),
    main: "out/webpack.mjs",
    hasMap: true,
  },
  "webpack, in development, where modules are texts that are evaluated": {
    script: webpack(`mode: "development", ${asModule}`, moduleIn("webpack-dev.mjs")),
    main: "out/webpack-dev.mjs",
  },
  "webpack, CommonJS, minified": {
    script: webpack(
      `mode: "production", entry: "./app/main-function.ts", ${external.webpackCommon}`,
      'filename: "webpack.cjs"',
    ),
    main: "out/webpack.cjs",
  },
  "webpack, CommonJS, in development": {
    script: webpack(
      `mode: "development", entry: "./app/main-function.ts", ${external.webpackCommon}`,
      'filename: "webpack-dev.cjs"',
    ),
    main: "out/webpack-dev.cjs",
  },
};

const within: Readonly<Record<string, Bundle>> = {
  "esbuild, ES module": {
    script: esbuild('entryPoints: ["app/main.ts"], format: "esm", outfile: "in/es.mjs"', ""),
    main: "in/es.mjs",
  },
  "esbuild, CommonJS, minified": {
    script: esbuild(
      'entryPoints: ["app/main-function.ts"], format: "cjs", minify: true, outfile: "in/es.cjs"',
      "",
    ),
    main: "in/es.cjs",
  },
  "vite ssr": {
    script: vite('outDir: "in/vite"', "ssr: { noExternal: true }"),
    main: "in/vite/main.js",
  },
  "rolldown, ES module": {
    script: rolldown("main", 'dir: "in/rolldown", format: "esm"', ""),
    main: "in/rolldown/main.js",
  },
  "rolldown, CommonJS": {
    script: rolldown("main-function", `dir: "in/rolldown-cjs", ${asCommon}`, ""),
    main: "in/rolldown-cjs/main-function.cjs",
  },
  "webpack, minified": {
    script: webpack(`mode: "production", ${asModule}`, moduleIn("../in/webpack.mjs"), ""),
    main: "in/webpack.mjs",
  },
  "webpack, in development": {
    script: webpack(`mode: "development", ${asModule}`, moduleIn("../in/webpack-dev.mjs"), ""),
    main: "in/webpack-dev.mjs",
  },
};

async function build(script: string): Promise<void> {
  await project.write({ "build.mjs": script });
  const { code, stderr, stdout } = await project.node(["--no-warnings", "build.mjs"]);
  expect({ code, said: code === 0 ? "" : stderr + stdout }).toEqual({ code: 0, said: "" });
}

describe("a bundle that leaves rayling out works like any script", () => {
  test.for(Object.entries(without))("%s", async ([, bundle], { skip }) => {
    skip(project.away !== undefined, project.away);
    const { script, main, hasMap, hasChunks } = bundle;
    await build(script);
    // A host that loads the bundle comes no further than to the driver's first call.
    const late = hasChunks ? {} : { late: "REMOTE_NOT_REGISTERED" };
    expectReports(await project.node([main]), { ...late, hasSourceLines: false });
    if (hasMap) expectReports(await project.node(["--enable-source-maps", main]), late);
  });
});

describe("a bundle that holds rayling says in one line how to leave it out, at the first call", () => {
  test.for(Object.entries(within))("%s", async ([, { script, main }], { skip }) => {
    skip(project.away !== undefined, project.away);
    await build(script);
    // Node shows the line of code that has thrown, which may be the whole bundle.
    const { code, stderr } = await project.node(["--import", "./brief.mjs", main]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^rayling is inside (a|the) bundle.*\n$/) as string,
    });
    for (const setting of Object.values(external)) expect(stderr).toContain(setting);
  });
});

test("what two calls become that a minifier puts into one place of the source is refused, or right", async ({
  skip,
}) => {
  skip(project.away !== undefined, project.away);
  await project.write({
    "app/inlined.ts": `import { isMainThread as isDriver } from "node:worker_threads";
import * as ray from "rayling";
const make = (name: string): ray.RemoteFunction<() => string> => ray.remote(() => name);
const one = isDriver ? make("driver") : make("host"), other = make("other");
const told = await Promise.allSettled([one, other].map((remote) => ray.get(remote.remote())));
console.log(JSON.stringify(told.map((end) => end.status === "fulfilled" ? end.value : end.reason.code)));
await ray.shutdown();
`,
  });
  await build(
    webpack(
      'mode: "production", devtool: "source-map", entry: "./app/inlined.ts", experiments: { outputModule: true }',
      moduleIn("inlined.mjs"),
    ),
  );
  for (const flags of [[], ["--enable-source-maps"]]) {
    const { stdout, stderr } = await project.node([...flags, "out/inlined.mjs"]);
    expect(stdout, stderr).toBe('["REMOTE_NOT_REGISTERED","other"]\n');
  }
});

test("docs/bundlers.md says the settings that these bundles were made with", () => {
  const page = readFileSync(join(root, "docs/bundlers.md"), "utf8");
  for (const setting of Object.values(external)) expect(page).toContain(setting);
});
