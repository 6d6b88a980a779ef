/**
 * Puts what several entries load into one file. A bundler makes a file for each set of entries that share something, which are dozens where there are ten entries, and a host would open
 * all of them.
 */
import { basename, dirname, join, relative } from "node:path";
import { build } from "esbuild";
import type { BuildOptions, Metafile, OutputFile, Plugin } from "esbuild";

export interface OneFile {
  /** The folder of all files. */
  readonly out: string;
  /** Its name there. */
  readonly file: string;
  /** The entry whose code lies in it, too: what is left of that is a list of names. */
  readonly whole: string;
  /** An entry that stays, because it runs where it is loaded; all that it imports lies in the file. */
  readonly runs: string;
  readonly options: BuildOptions & { readonly write: false };
}

/** What a bundler has made, by its path below the folder. */
type Texts = ReadonlyMap<string, string>;

/** @returns all files, as they are to be written */
export async function inOneFile(
  outputFiles: readonly OutputFile[],
  { outputs }: Metafile,
  { out, file, whole, runs, options }: OneFile,
): Promise<OutputFile[]> {
  const texts: Texts = new Map(outputFiles.map(({ path, text }) => [relative(out, path), text]));
  const described = new Map(
    Object.entries(outputs).map(([path, output]) => [
      relative(out, join(options.absWorkingDir ?? "", path)),
      output,
    ]),
  );
  const parts = new Set<string>();
  const visit = (path: string): void => {
    if (parts.has(path)) return;
    if (path !== runs) parts.add(path);
    for (const { path: imported, kind, external } of described.get(path)?.imports ?? []) {
      if (kind !== "import-statement" || external === true) continue;
      visit(relative(out, join(options.absWorkingDir ?? "", imported)));
    }
  };
  visit(runs);
  visit(whole);
  const names = (path: string): readonly string[] => described.get(path)?.exports ?? [];
  const shared = [...parts].filter((path) => path !== whole);
  const ofPart = new Map(shared.map((path, index) => [path, `_${index}`]));
  const contents = shared.map(
    (path) => `export {${names(path).map((name) => `${name} as ${name}${ofPart.get(path)}`).join()}} from "./${path}";`,
  );
  const { outputFiles: made } = await build({
    ...options,
    inject: [],
    splitting: false,
    entryPoints: undefined,
    outdir: undefined,
    absWorkingDir: out,
    outfile: join(out, file),
    stdin: { contents: [...contents, `export * from "./${whole}";`].join("\n"), resolveDir: out },
    plugins: [fromMemory(texts)],
  });
  const list = `export {\n  ${names(whole).toSorted().join(",\n  ")}\n} from "./${file}";\n`;
  const rest = [...texts].flatMap(([path, text]) => {
    if (ofPart.has(path)) return [];
    return [asFile(join(out, path), path === whole ? list : inTermsOf(path, text))];
  });
  return [...made, ...rest];

  /** Returns the text of a file with what it imports of the parts taken from the one file. */
  function inTermsOf(path: string, text: string): string {
    return text.replaceAll(
      /^import (?:\{([^}]*)\} from )?"(\.[^"]*)";\n/gm,
      (statement: string, taken: string | undefined, from: string) => {
        const part = ofPart.get(join(dirname(path), from));
        if (part === undefined) return statement;
        const place = `${"../".repeat(path.split("/").length - 1) || "./"}${file}`;
        if (taken === undefined) return `import "${place}";\n`;
        const specifiers = taken.split(",").map((one) => {
          const [name = "", as = name] = one.trim().split(" as ");
          return `${name}${part} as ${as}`;
        });
        return `import { ${specifiers.join(", ")} } from "${place}";\n`;
      },
    );
  }
}

function fromMemory(texts: Texts): Plugin {
  return {
    name: "from memory",
    setup(bundler) {
      bundler.onResolve({ filter: /.*/ }, ({ path, kind }) =>
        path.startsWith(".") && kind === "import-statement"
          ? { path: basename(path), namespace: "part" }
          : { path, external: true },
      );
      bundler.onLoad({ filter: /.*/, namespace: "part" }, ({ path }) => ({
        contents: texts.get(path) ?? "",
      }));
    },
  };
}

function asFile(path: string, text: string): OutputFile {
  const contents = new TextEncoder().encode(text);
  return { path, contents, text, hash: "" };
}
