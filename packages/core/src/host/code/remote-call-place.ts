/**
 * Finds where a `remote()` call stands: its place in its file, and the callers of that code while
 * its module loaded, outwards to the module itself.
 *
 * Places are those in the files on disk. The running text may differ (tsx, vitest and jest
 * transform the modules that they load), so places come from a source-mapped stack. A place that
 * maps to another file, such as the source of a compiled file, is recorded together with that file:
 * which of both texts runs is unknown.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import util from "node:util";
import { driversOf, driversText } from "../../shared/code-roots.ts";
import { hasGlobalsOfNode } from "../../shared/machine/globals.ts";
import { ownFolder } from "../../shared/own-files.ts";

export interface Place {
  /** The URL at the driver. */
  readonly moduleUrl: string;
  /** `line:column`, with a file before it where a source map names another file. */
  readonly at: string;
}

export interface CallChain {
  /** The places, the innermost first; at least one. */
  readonly places: readonly Place[];
  /** Whether Node's loader made the call: a module is being evaluated. */
  readonly isEvaluating: boolean;
  /** Whether the last place is in a module that Node itself loaded as an ES module. */
  readonly isEsm: boolean;
}

/** This many callers suffice to tell two calls apart; a recursive helper has more. */
const longest = 50;

/** Tools that evaluate modules in place of Node's loader. */
const runners =
  /[\\/]node_modules[\\/](?:vite|vitest|vite-node|jest-[a-z-]+|@jest[\\/][a-z-]+|rolldown)[\\/]/;

/**
 * Modules as texts inside a file, which webpack evaluates one by one in development. The file
 * contains them all, so its hash covers them, too.
 */
const bundled = /^webpack[a-z-]*:/;

/**
 * Marks a place in a text that was made from a file and is evaluated, as vite does, when no source
 * map names the place in the file.
 */
const unmapped = " of what was made of it";

export function isUnmapped({ at }: Place): boolean {
  return at.endsWith(unmapped);
}

/** tsx evaluates a module that it has made CommonJS. */
const tsx = /[\\/]node_modules[\\/]tsx[\\/]dist[\\/]/;

/**
 * Whether the outermost of those calls is tsx's own: it puts such a module into a function, which
 * the last line, `})();`, calls. Nothing of the user's stands there.
 *
 * @param end the index of the frame of Node's loader that evaluates the module
 */
function isCalledByTsx(sites: readonly util.CallSiteObject[], end: number): boolean {
  const [inner, outer, , loader] = end < 2 ? [] : sites.slice(end - 2, end + 2);
  return (
    inner?.scriptName === outer?.scriptName &&
    outer?.functionName === "" &&
    outer.columnNumber === "})(".length &&
    tsx.test(loader?.scriptName ?? "")
  );
}

/**
 * @param skipped the number of frames above the wanted one, without this function's own
 * @returns the chain; or only `script`, if the call is not in a file
 */
export function callChain(skipped: number): CallChain | { readonly script: string } {
  const first = skipped + 1;
  const plain = plainChain(first + 1);
  if (plain !== undefined) return plain;
  const sites = util.getCallSites(longest + first, { sourceMap: false }).slice(first);
  const stack = shownPlaces(longest + first).slice(first);
  const places: Place[] = [];
  /** Places in the running text, where it says that it is made from another. */
  const running: (string | undefined)[] = [];
  /** The modules that the text of the next file evaluates. */
  let within = "";
  let isEvaluating = false;
  let isEsm = false;
  for (const [index, { scriptName: named, lineNumber, columnNumber }] of sites.entries()) {
    // Bun's own frames have none.
    const scriptName = (named as string | undefined) ?? "";
    isEvaluating = scriptName.startsWith("node:internal/modules/");
    const ran = `${lineNumber}:${columnNumber}`;
    const shown = stack[index] ?? { script: scriptName, at: ran };
    if (scriptName === "" && bundled.test(shown.script)) {
      within += `${shown.script}:${shown.at} in `;
      continue;
    }
    const url = urlOf(scriptName === "" ? evaluatedFile(shown.script) : scriptName);
    if (url === undefined || runners.test(scriptName)) {
      const outermost = sites[index - 1];
      const isMade = places.at(-1)?.at !== `${outermost?.lineNumber}:${outermost?.columnNumber}`;
      if (isMade && isCalledByTsx(sites, index)) places.pop();
      break;
    }
    // A host runs the call: the chain ends at the user's code. Some remotes are the package's own.
    if (places.length > 0 && url.startsWith(ownFolder.href)) break;
    isEsm = scriptName.startsWith("file:");
    const isSameFile = urlOf(shown.script) === url;
    // Evaluated text begins with a wrapper, so that a mapped place differs from the running one.
    const isAsItRuns = scriptName === "" && shown.at === ran;
    const at = isSameFile && !isAsItRuns ? shown.at : driversText(`${shown.script}:${shown.at}`);
    places.push({ moduleUrl: driversOf(url), at: within + at + (isAsItRuns ? unmapped : "") });
    running.push(isSameFile ? undefined : ran);
    within = "";
  }
  if (places.length === 0) return { script: sites[0]?.scriptName ?? "" };
  // The running text is then the file's own. Code that a compiler copied to several places has one
  // place in the source.
  const known = isEvaluating
    ? places.map((place, index) => withRunning(place, running[index]))
    : places;
  return { places: known, isEvaluating, isEsm };
}

/**
 * Returns the chain where no text is mapped to another and all of it is in files of Node's own
 * loader: undefined elsewhere. The other way asks V8 for places in this package's own file, which
 * takes a millisecond in each thread.
 */
function plainChain(skipped: number): CallChain | undefined {
  const maker = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace");
  if (process.sourceMapsEnabled || !isNodes(maker)) return undefined;
  // Node asks the function of its own globals, too, which is not seen from others.
  if (!hasGlobalsOfNode()) return undefined;
  const places: Place[] = [];
  let isEsm = false;
  for (const site of callSites(skipped + 1)) {
    // Who awaits it is no caller.
    if (site.isAsync() && places.length > 0) return { places, isEvaluating: false, isEsm };
    const script = site.getFileName();
    if (typeof script !== "string" || runners.test(script)) return undefined;
    // A text may give itself another name.
    if (site.getScriptNameOrSourceURL() !== script) return undefined;
    const url = urlOf(script);
    const isOwn = places.length > 0 && url?.startsWith(ownFolder.href) === true;
    if (isOwn || script.startsWith("node:")) {
      if (places.length === 0) return undefined;
      return { places, isEvaluating: script.startsWith("node:internal/modules/"), isEsm };
    }
    if (url === undefined) return undefined;
    isEsm = script.startsWith("file:");
    const at = `${site.getLineNumber()}:${site.getColumnNumber()}`;
    places.push({ moduleUrl: driversOf(url), at });
  }
  return undefined;
}

/** Whether the function that makes the text of a stack is Node's own, and may be replaced. */
function isNodes(maker: PropertyDescriptor | undefined): boolean {
  // Node 22 has none until the user sets one.
  if (maker === undefined) return Object.isExtensible(Error);
  const { value, writable } = maker as { readonly value?: unknown; readonly writable?: boolean };
  if (writable !== true) return false;
  return (
    value === undefined || (typeof value === "function" && value.name === "ErrorPrepareStackTrace")
  );
}

/** Returns the calls under way, the innermost first, without so many of them. */
function callSites(skipped: number): readonly NodeJS.CallSite[] {
  const { stackTraceLimit } = Error;
  const maker = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace");
  let sites: readonly NodeJS.CallSite[] = [];
  try {
    Error.stackTraceLimit = longest + skipped;
    Error.prepareStackTrace = (_error, all) => (sites = all);
    // The sites are there once the stack is asked for.
    void new Error("a place").stack;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (maker === undefined) Reflect.deleteProperty(Error, "prepareStackTrace");
    else Object.defineProperty(Error, "prepareStackTrace", maker);
  }
  return sites.slice(skipped);
}

function withRunning(place: Place, at: string | undefined): Place {
  return at === undefined ? place : { ...place, at: `${place.at} (${at})` };
}

/**
 * Returns the place of the user's code that called the running code; undefined when it is in no
 * file.
 */
export function userPlace(): Place | undefined {
  const sites = util.getCallSites(longest, { sourceMap: true });
  const site = sites.find(({ scriptName }) => {
    const url = urlOf(scriptName);
    return url !== undefined && !url.startsWith(ownFolder.href);
  });
  if (site === undefined) return undefined;
  const url = urlOf(site.scriptName) as string;
  return { moduleUrl: driversOf(url), at: `${site.lineNumber}:${site.columnNumber}` };
}

/** Returns the file that an evaluated text names; "" if that is no file. */
function evaluatedFile(script: string): string {
  return script.includes("<anonymous>") ? "" : script;
}

function urlOf(script: string): string | undefined {
  if (script.startsWith("file:")) return script;
  const isPath = script.startsWith("/") || /^[A-Za-z]:[\\/]/.test(script);
  return isPath ? pathToFileURL(script).href : undefined;
}

/** Returns the place of each frame, as the installed stack mapping shows it. */
function shownPlaces(
  depth: number,
): readonly ({ readonly script: string; readonly at: string } | undefined)[] {
  const { stackTraceLimit } = Error;
  // A program may have frozen Error: its stacks are then as long as they were.
  Reflect.set(Error, "stackTraceLimit", depth + 1);
  let stack: unknown;
  try {
    ({ stack } = new Error("a place"));
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  }
  // The user may have changed it to any value.
  if (typeof stack !== "string") return [];
  // Stacks contain built-in functions, and call sites do not; this function's own frame is dropped,
  // too.
  const frames = stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !line.endsWith("(<anonymous>)"));
  return frames.slice(1).map((line) => {
    const [, script, at] =
      /^\s+at (?:.*? \()?((?:file:\/\/|webpack[a-z-]*:|\/|[A-Za-z]:[\\/]).*):(\d+:\d+)\)?$/.exec(
        line,
      ) ?? [];
    return script === undefined || at === undefined ? undefined : { script, at };
  });
}

/** Returns `file:line:column`, for people. */
export function placeText({ moduleUrl, at }: Place): string {
  return /^\d/.test(at) ? `${fileURLToPath(moduleUrl)}:${at}` : at;
}

const before = " < ";

export function chainText(places: readonly Place[]): string {
  return places.map(({ moduleUrl, at }) => `${moduleUrl}|${at}`).join(before);
}

export function chainOf(text: string): readonly Place[] {
  return text.split(before).map((one) => {
    const [moduleUrl = "", at = ""] = one.split("|");
    return { moduleUrl, at };
  });
}
