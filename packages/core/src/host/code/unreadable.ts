/**
 * Explains why a worker cannot load a module that the driver has. In a worker Node loads the file
 * as it is on disk; the driver's tool (vitest, jest, a loader that was not set by a flag) may
 * accept more, or have transformed it.
 *
 * It knows the errors of Node's own loader, and of test runners and their absence. Other errors
 * that the module's code throws are not examined.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hasCodeRoots, hereOf } from "../../shared/code-roots.ts";
import { namesOwnFile } from "../../shared/own-files.ts";
import { codeOf } from "../../shared/errors/thrown.ts";

/** Returns undefined when the module was read and its own code has thrown. */
export function whyUnreadable(moduleUrl: string, error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { message } = error;
  const code = codeOf(error);
  if (importsOfRunners.test(message)) {
    return `its module stopped in a worker at the import of a test runner, which is not there (${firstLine(message)}). Move the remote() call to a file of its own`;
  }
  if (isOfTestRunner(error)) {
    return `its module stopped in a worker at a call of a test runner, which is not there: ${firstLine(message)}. Move the remote() call above the first test, or to a file of its own`;
  }
  if (code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX" || code === "ERR_INVALID_TYPESCRIPT_SYNTAX") {
    return `${placeIn(error) ?? fileURLToPath(moduleUrl)}: ${firstLine(message)}. ${advice(message)}${loaders()}`;
  }
  if (error instanceof SyntaxError && /\.[mc]?tsx?$/.test(moduleUrl) && isOfParser(error)) {
    const file = fileURLToPath(moduleUrl);
    const line = lineOfDecorator(moduleUrl);
    return line === undefined
      ? `${placeIn(error) ?? `${file}, or what it imports`}: ${firstLine(message)}. ${loaders()}`
      : `${file}:${line}: Node knows no decorators (${message}). ${advice("decorator")}${loaders()}`;
  }
  if (code === "ERR_UNKNOWN_FILE_EXTENSION") return `${firstLine(message)}. ${loaders()}`;
  if (code === "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING") {
    return `${firstLine(message)}. Build the package, or: ${loaders()}`;
  }
  if (
    !hasCodeRoots() &&
    (code === "ERR_MODULE_NOT_FOUND" || code === "ERR_UNSUPPORTED_DIR_IMPORT")
  ) {
    return `${firstLine(message)}. Node takes imports as they stand, with the names of files whole and without aliases. Write them so. ${loaders()}`;
  }
  return undefined;
}

const hasTsx: boolean = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].some((one) =>
  /\btsx\b/.test(one),
);

/** tsx 4.23 installs its hooks in worker threads from these versions on. */
const tsxReachesThreads: boolean = [
  [22, 22, 3],
  [24, 11, 1],
  [25, 1, 0],
].some(([major = 0, minor = 0, patch = 0], index, all) => {
  const [ours = 0, ourMinor = 0, ourPatch = 0] = process.versions.node.split(".").map(Number);
  const isLast = index === all.length - 1;
  if (ours !== major) return isLast && ours > major;
  return ourMinor > minor || (ourMinor === minor && ourPatch >= patch);
});

function loaders(): string {
  if (!hasTsx) {
    const transforms = process.allowedNodeEnvironmentFlags.has("--experimental-transform-types");
    return (
      'Where the driver has a loader that can take it, as under vitest or jest, give workers one, too: init({ runtimeEnv: { execArgv: ["--import=tsx"] } }), with tsx installed' +
      (transforms
        ? '; for enums, namespaces and parameter properties "--experimental-transform-types" does it, too'
        : "")
    );
  }
  return tsxReachesThreads
    ? "tsx, which is given, does not take it either"
    : `tsx is given, but reaches worker threads from Node 22.22.3 and 24.11.1 on, and this is ${process.version}. Take such a Node, or isolation: "process"`;
}

/** Advice by the syntax that Node names as not supported. */
const instead: readonly (readonly [RegExp, string])[] = [
  [/enum/, 'Write an object "as const" in place of the enum'],
  [/parameter property/, "Declare the field, and assign it in the constructor"],
  [/namespace|`module`/, "Export its parts from a module in place of the namespace"],
  [/import equals/, 'Write import x from "x"'],
  [/export assignment/, "Write export default"],
  [/decorator/, "Call the decorator as a function in place of @"],
];

function advice(message: string): string {
  const known = instead.find(([pattern]) => pattern.test(message));
  return known === undefined ? "" : `${known[1]}. `;
}

/** Returns `file:line` from the line that Node puts above the name of such an error. */
function placeIn({ stack = "" }: Error): string | undefined {
  const [, file, line] = /^(file:.*|\/.*|[A-Za-z]:[\\/].*):(\d+)$/.exec(firstLine(stack)) ?? [];
  if (file === undefined) return undefined;
  return `${file.startsWith("file:") ? fileURLToPath(file) : file}:${line}`;
}

/**
 * Whether the parser made the error. An error that code made by itself, as through JSON.parse, has
 * that code in its stack.
 */
function isOfParser({ stack = "" }: Error): boolean {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames.every((line) => /[( ]node:internal\//.test(line) || namesOwnFile(line));
}

/** Finds a decorator: V8 only reports an invalid token. */
function lineOfDecorator(moduleUrl: string): number | undefined {
  try {
    const lines = readFileSync(fileURLToPath(hereOf(moduleUrl) ?? moduleUrl), "utf8").split("\n");
    const index = lines.findIndex((line) =>
      /(^|[{\s])@[A-Za-z_$][\w$.]*(\(|\s|$)/.test(withoutTexts(line)),
    );
    return index < 0 ? undefined : index + 1;
  } catch {
    // A file that no longer exists has no lines.
    return undefined;
  }
}

function withoutTexts(line: string): string {
  return line.replace(/\/\/.*|\/?\*.*|"[^"]*"|'[^']*'|`[^`]*`/g, "");
}

function isOfTestRunner({ name, message }: Error): boolean {
  if (/^Vitest failed to (find|access)|^Vitest mocker was not/.test(message)) return true;
  return name === "ReferenceError" && globalsOfRunners.test(message);
}

/** As `require` and `import` of it fail. */
const importsOfRunners =
  /^Do not import `@jest\/globals`|^Named export .* The requested module '@jest\/globals'/;

const globalsOfRunners =
  /^(test|it|xit|fit|xtest|describe|xdescribe|fdescribe|suite|bench|before|after|beforeAll|afterAll|beforeEach|afterEach|expect|expectTypeOf|assertType|vi|vitest|jest) is not defined$/;

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
