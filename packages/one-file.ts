/**
 * Puts all that threads of hosts load into one file. A bundler makes a file for each set of entries
 * that share something, dozens where there are ten entries, and a thread would open all of them.
 *
 * The file is a module (`inOneModule`), or its code is one function, which returns the exports, and
 * Node takes another file in its place (`#kept`, in the package's imports), which compiles that
 * function by itself and keeps what was compiled of it (core/src/shared/compiled/kept-code.ts). Most
 * bundlers take the file itself.
 */
import { createHash } from "node:crypto";
import { basename, dirname, join, relative } from "node:path";
import { build } from "esbuild";
import type { BuildOptions, Metafile, OutputFile, Plugin } from "esbuild";
import { parseSync } from "oxc-parser";
import { nodeModules } from "./node-modules.ts";

/** Paths are those below the folder of all files. */
export interface OneModule {
  /** Its own, to which a hash and the ending are added. */
  readonly file: string;
  /** The entries whose code lies in it, with all that they import: what is left of each is a list of names. */
  readonly listed: readonly string[];
}

export interface OneFile extends OneModule {
  /** The module that loads the file with what is kept of it. */
  readonly loader: string;
  /** The export that a thread calls which begins with the loader. */
  readonly threadMain: string;
}

/** The bundler's work. */
export interface Made {
  /** The folder of all files. */
  readonly out: string;
  readonly outputFiles: readonly OutputFile[];
  readonly metafile: Metafile;
}

/** One of the bundler's files, by its path below the folder. */
interface Part {
  readonly text: string;
  readonly exports: readonly string[];
  /** The files that are loaded with it. */
  readonly imports: readonly string[];
}

type Parts = ReadonlyMap<string, Part>;

/**
 * @param options how all of it is bundled
 * @returns all files, as they are to be written
 */
export async function inOneFile(
  made: Made,
  { file, listed, loader, threadMain }: OneFile,
  options: BuildOptions,
): Promise<OutputFile[]> {
  const { out } = made;
  const divided = dividedBy(made, listed);
  // A thread reads and keeps all of the text. Names stay, for stacks.
  const terse = { ...options, minifyWhitespace: true, lineLimit: 160 };
  const { text, names } = asFunction(await joined(divided, { file, out }, terse));
  const name = named(file, text);
  return [
    asFile(join(out, `${name}.js`), `${text}${mentionOf(name)}`),
    await keptFile(join(out, "kept", `${name}.js`), { names, loader, threadMain }, options),
    ...othersOf(divided, out, () => `#kept/${name}`),
  ];
}

/** As `inOneFile`, with a module that Node's own loader compiles and keeps. */
export async function inOneModule(
  made: Made,
  { file, listed }: OneModule,
  options: BuildOptions,
): Promise<OutputFile[]> {
  const { out } = made;
  const divided = dividedBy(made, listed);
  const text = await joined(divided, { file, out }, options);
  const name = named(file, text);
  const to = (path: string): string => {
    const place = relative(dirname(path), `${name}.js`);
    return place.startsWith(".") ? place : `./${place}`;
  };
  return [asFile(join(out, `${name}.js`), text), ...othersOf(divided, out, to)];
}

/** What the bundler has made, by what becomes of it. */
interface Divided {
  readonly parts: Parts;
  readonly listed: readonly string[];
  /** The end of each part's names in the one file. */
  readonly marks: ReadonlyMap<string, string>;
  /** The names that the rest imports of each part. */
  readonly taken: ReadonlyMap<string, Set<string>>;
  /** Files that stay. */
  readonly rest: readonly Rest[];
}

function dividedBy(made: Made, listed: readonly string[]): Divided {
  const parts = partsOf(made);
  const within = new Set<string>();
  const take = (path: string): void => {
    if (within.has(path)) return;
    within.add(path);
    for (const one of parts.get(path)?.imports ?? []) take(one);
  };
  for (const one of listed) take(one);
  for (const one of listed) within.delete(one);
  // Two of them may have the same name for different things.
  const marks = new Map([...within].map((path, index) => [path, `_${index}`]));
  const taken = new Map([...within].map((path) => [path, new Set<string>()]));
  const rest = [...parts]
    .filter(([path]) => !listed.includes(path) && !within.has(path))
    .map(([path, { text }]) => ({ path, text, marks, taken }));
  for (const one of rest) inTermsOf("", one);
  return { parts, listed, marks, taken, rest };
}

/** Returns the text of the one file. */
async function joined(
  { parts, listed, marks, taken }: Divided,
  { file, out }: { readonly file: string; readonly out: string },
  options: BuildOptions,
): Promise<string> {
  // Nothing else is exported: V8 searches through all exports for each that it looks up.
  const lines = [...taken].map(([path, names]) => {
    const clause = [...names].map((name) => `${name} as ${name}${marks.get(path)}`);
    return `export { ${clause.join(", ")} } from "./${path}";`;
  });
  const lists = listed.map((one) => {
    const own = ownNames(parts, one).map((name) => {
      const as = nameIn(parts, listed, one, name);
      return as === name ? name : `${name} as ${as}`;
    });
    return `export { ${own.join(", ")} } from "./${one}";`;
  });
  const { outputFiles } = await build({
    ...options,
    write: false,
    inject: [],
    splitting: false,
    absWorkingDir: out,
    outfile: join(out, `${file}.js`),
    stdin: {
      contents: [...lines, ...lists].join("\n"),
      resolveDir: out,
    },
    plugins: [fromMemory(parts)],
  });
  return outputFiles.map((one) => one.text).join("");
}

/** Programs that run while this is built anew find one build or the other. */
function named(file: string, text: string): string {
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();
  return `${file}-${hash}`;
}

/** @param to returns how the file at that path names the one file */
function othersOf(
  { parts, listed, rest }: Divided,
  out: string,
  to: (path: string) => string,
): OutputFile[] {
  return [
    ...rest.map((one) => asFile(join(out, one.path), inTermsOf(to(one.path), one))),
    ...listed.map((one) => {
      const own = ownNames(parts, one).map((name) => {
        const as = nameIn(parts, listed, one, name);
        return as === name ? name : `${as} as ${name}`;
      });
      const list = `export {\n  ${own.join(",\n  ")}\n} from "${to(one)}";\n`;
      return asFile(join(out, one), list);
    }),
  ];
}

function ownNames(parts: Parts, listed: string): readonly string[] {
  return parts.get(listed)?.exports.toSorted() ?? [];
}

/** Two entries may export one name: in the file that of the later one has an end. */
function nameIn(parts: Parts, listed: readonly string[], own: string, name: string): string {
  const before = listed.slice(0, listed.indexOf(own));
  const isTaken = before.some((one) => parts.get(one)?.exports.includes(name) === true);
  return isTaken ? `${name}_of${before.length}` : name;
}

/**
 * Returns a module that exports the same, and whose code is one function of the module's URL, of
 * `import`, and of what has loaded it (core/src/shared/compiled/keep-compiled.ts), which is nothing
 * here. It stands in brackets, so that V8 compiles it at once.
 *
 * The exports are what they are at its end: no module of this package has an export that changes.
 *
 * @returns the names are those of the exports, in the order in which the function returns them
 * @throws TypeError where the text imports another module, exports more than one list, or is not
 * all ASCII
 */
function asFunction(text: string): { readonly text: string; readonly names: readonly string[] } {
  const { module, errors } = parseSync("file.js", text);
  const { staticImports, staticExports, dynamicImports, importMetas } = module;
  const [list, ...more] = staticExports;
  if (errors.length > 0 || staticImports.length > 0 || list === undefined || more.length > 0)
    throw new TypeError("the one file is no module with one list of exports and no imports");
  // It is read byte by byte.
  if (/[^\0-\x7f]/.test(text)) throw new TypeError("the one file has characters beyond ASCII");
  const replaced = [
    ...importMetas.map(({ start, end }) => ({ start, end: endOfUrl(text, end), by: "__url" })),
    ...dynamicImports.map(({ start }) => ({ start, end: start + "import".length, by: "__import" })),
  ].toSorted((a, b) => a.start - b.start);
  let body = "";
  let at = 0;
  for (const { start, end, by } of replaced) {
    body += text.slice(at, start) + by;
    at = end;
  }
  body += text.slice(at, list.start);
  const locals = list.entries.map(({ localName }) => localName.name);
  const names = list.entries.map(({ exportName }) => exportName.name ?? "default");
  const whole = `const all=(function(__url,__import,loadedCode){"use strict";
${body}${text.slice(list.end)}
return[${locals.join(",")}]})(import.meta.url,(place)=>import(place));
${exportsOf(names)}`;
  return { text: whole, names };
}

/** File tracers, which copy what a program needs, find Node's file by it. It never runs. */
function mentionOf(name: string): string {
  return `void(()=>import.meta.resolve("./kept/${name}.js"));\n`;
}

/** Returns the end of a module that has the values of its exports in `all`. */
function exportsOf(names: readonly string[]): string {
  const values = names.map((_, index) => `e${index}=all[${index}]`);
  const list = names.map((name, index) => `e${index} as ${name}`);
  return `const ${values.join(",")};\nexport{${list.join(",")}};\n`;
}

/** @throws TypeError where more is asked of a module than its URL */
function endOfUrl(text: string, from: number): number {
  const asked = /\s*\.\s*url\b/y;
  asked.lastIndex = from;
  if (!asked.test(text)) throw new TypeError("the one file asks import.meta for more than its url");
  return asked.lastIndex;
}

interface Kept extends Pick<OneFile, "loader" | "threadMain"> {
  readonly names: readonly string[];
}

/** Returns the file that Node takes in place of the one file, which lies in the folder above. */
async function keptFile(
  path: string,
  { names, loader, threadMain }: Kept,
  options: BuildOptions,
): Promise<OutputFile> {
  // Its name may have an end there.
  const main = names.findIndex((name) => name.replace(/_\d+$/, "") === threadMain);
  if (main < 0) throw new TypeError(`the one file exports no ${threadMain}`);
  const { outputFiles } = await build({
    ...options,
    write: false,
    splitting: false,
    outfile: path,
    stdin: {
      contents: `import { loadKept } from "./src/${loader}.ts";
const name = "${basename(path)}";
const all = loadKept({ url: import.meta.url, name, importModule: (place) => import(place), threadMain: ${main} });
${exportsOf(names)}`,
      resolveDir: options.absWorkingDir ?? ".",
    },
    plugins: [nodeModules],
  });
  return asFile(path, (outputFiles ?? []).map((one) => one.text).join(""));
}

function asFile(path: string, text: string): OutputFile {
  return { path, text, contents: new TextEncoder().encode(text), hash: "" };
}

function partsOf({ out, outputFiles, metafile }: Made): Parts {
  const texts = new Map(outputFiles.map(({ path, text }) => [relative(out, path), text]));
  // The bundler names files as seen from where it ran: all of them have one beginning.
  const paths = Object.keys(metafile.outputs);
  const ownPaths = [...texts.keys()].toSorted((a, b) => b.length - a.length);
  const own = (path: string): string =>
    ownPaths.find((one) => path === one || path.endsWith(`/${one}`)) ?? path;
  return new Map(
    paths.map((path) => {
      const { exports, imports } = metafile.outputs[path] ?? { exports: [], imports: [] };
      const loaded = imports
        .filter(({ kind, external }) => kind === "import-statement" && external !== true)
        .map((one) => own(one.path));
      return [own(path), { text: texts.get(own(path)) ?? "", exports, imports: loaded }];
    }),
  );
}

/** Reads files that the bundler has made before; all else stays an import. */
function fromMemory(parts: Parts): Plugin {
  return {
    name: "from memory",
    setup(bundler) {
      bundler.onResolve({ filter: /.*/ }, ({ path, importer, namespace, kind }) => {
        const place = join(namespace === "part" ? dirname(importer) : "", path);
        return parts.has(place) && kind === "import-statement"
          ? { path: place, namespace: "part" }
          : { path, external: true };
      });
      bundler.onLoad({ filter: /.*/, namespace: "part" }, ({ path }) => ({
        contents: parts.get(path)?.text ?? "",
      }));
    },
  };
}

interface Rest {
  readonly path: string;
  readonly text: string;
  /** The end of each part's names in the one file. */
  readonly marks: ReadonlyMap<string, string>;
  /** Gets the names that it imports of each. */
  readonly taken: ReadonlyMap<string, Set<string>>;
}

/**
 * Returns the text of a file that imports from the one file, by that name, what it imported from
 * parts of it, and notes these names.
 */
function inTermsOf(file: string, { path, text, marks, taken }: Rest): string {
  const clause: string[] = [];
  let asks = false;
  const left = text.replaceAll(
    /^import (?:\{([^}]*)\} from )?"(\.[^"]*)";\n/gm,
    (statement: string, names: string | undefined, from: string) => {
      const part = join(dirname(path), from);
      const mark = marks.get(part);
      if (mark === undefined) return statement;
      asks = true;
      for (const one of names?.split(",") ?? []) {
        const [name = "", as = name] = one.trim().split(" as ");
        taken.get(part)?.add(name);
        clause.push(`\n  ${name}${mark} as ${as}`);
      }
      return "";
    },
  );
  if (!asks) return text;
  const names = clause.length === 0 ? "" : `{${clause.join(",")}\n} from `;
  return `import ${names}${JSON.stringify(file)};\n${left}`;
}
