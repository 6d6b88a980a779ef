/**
 * Puts all that threads of hosts load into one file. A bundler makes a file for each set of entries
 * that share something, dozens where there are ten entries, and a thread would open all of them.
 */
import { createHash } from "node:crypto";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";
import type { BuildOptions, Metafile, OutputFile, Plugin } from "esbuild";

/** Paths are those below the folder of all files. */
export interface OneFile {
  /** Its own, to which a hash and the ending are added. */
  readonly file: string;
  /** The entry whose code lies in it, too: what is left of that is a list of names. */
  readonly listed: string;
  /** An entry that stays, because it runs where it is loaded; all that it imports lies in the file. */
  readonly runs: string;
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
  { file, listed, runs }: OneFile,
  options: BuildOptions,
): Promise<OutputFile[]> {
  const { out } = made;
  const parts = partsOf(made);
  const within = new Set<string>();
  const take = (path: string): void => {
    if (within.has(path)) return;
    within.add(path);
    for (const one of parts.get(path)?.imports ?? []) take(one);
  };
  take(runs);
  take(listed);
  within.delete(runs);
  within.delete(listed);
  // Two of them may have the same name for different things.
  const marks = new Map([...within].map((path, index) => [path, `_${index}`]));
  const taken = new Map([...within].map((path) => [path, new Set<string>()]));
  const rest = [...parts]
    .filter(([path]) => path !== listed && !within.has(path))
    .map(([path, { text }]) => ({ path, text, marks, taken }));
  for (const one of rest) inTermsOf("", one);
  // Nothing else is exported: V8 searches through all exports for each that it looks up.
  const lines = [...taken].map(([path, names]) => {
    const clause = [...names].map((name) => `${name} as ${name}${marks.get(path)}`);
    return `export { ${clause.join(", ")} } from "./${path}";`;
  });
  const { outputFiles } = await build({
    ...options,
    write: false,
    inject: [],
    splitting: false,
    // A thread reads and keeps all of the text. Names stay, for stacks.
    minifyWhitespace: true,
    lineLimit: 160,
    absWorkingDir: out,
    outfile: join(out, `${file}.js`),
    stdin: { contents: [...lines, `export * from "./${listed}";`].join("\n"), resolveDir: out },
    plugins: [fromMemory(parts)],
  });
  const text = outputFiles.map((one) => one.text).join("");
  // Programs that run while this is built anew find one build or the other.
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();
  const name = `${file}-${hash}.js`;
  const names = parts.get(listed)?.exports.toSorted() ?? [];
  const list = `export {\n  ${names.join(",\n  ")}\n} from "./${name}";\n`;
  return [
    asFile(join(out, name), text),
    ...rest.map((one) => asFile(join(out, one.path), inTermsOf(name, one))),
    asFile(join(out, listed), list),
  ];
}

function asFile(path: string, text: string): OutputFile {
  return { path, text, contents: new TextEncoder().encode(text), hash: "" };
}

function partsOf({ out, outputFiles, metafile }: Made): Parts {
  const texts = new Map(outputFiles.map(({ path, text }) => [relative(out, path), text]));
  // The bundler names files as seen from where it ran: all of them have one beginning.
  const paths = Object.keys(metafile.outputs);
  const own = (path: string): string =>
    [...texts.keys()].find((one) => path === one || path.endsWith(`/${one}`)) ?? path;
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
      bundler.onResolve({ filter: /.*/ }, ({ path, kind }) =>
        parts.has(path.replace("./", "")) && kind === "import-statement"
          ? { path: path.replace("./", ""), namespace: "part" }
          : { path, external: true },
      );
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
 * Returns the text of a file that imports from the one file what it imported from parts of it, and
 * notes these names.
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
  const place = JSON.stringify(`${"../".repeat(path.split("/").length - 1) || "./"}${file}`);
  const names = clause.length === 0 ? "" : `{${clause.join(",")}\n} from `;
  return `import ${names}${place};\n${left}`;
}
