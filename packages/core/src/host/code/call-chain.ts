/**
 * Where a `remote()` call stands: its place in its file, and from where that code was called while its module loaded, outwards to the module that did it.
 *
 * Places are those in the files on disk. What runs may be another text (tsx, vitest and jest transform what they load), so they are those that a stack shows,
 * which is mapped back. One that is in another file then, as in the source of what a compiler has made, is told with it: which of both texts runs is not known.
 */
import { fileURLToPath, pathToFileURL } from "node:url";
import util from "node:util";
import { driversOf, driversText } from "../../shared/code-roots.ts";
import { ownFolder } from "../../shared/own-files.ts";

export interface Place {
  /** As the driver knows it. */
  readonly moduleUrl: string;
  /** `line:column`, or with a file before it where a source map says that it is in another one. */
  readonly at: string;
}

export interface CallChain {
  /** Innermost first; at least one. */
  readonly places: readonly Place[];
  /** The loader of Node called it: a module is being evaluated. */
  readonly isEvaluating: boolean;
  /** The last one is in a module that Node itself loaded as an ES module. */
  readonly isEsm: boolean;
}

/** As many callers tell apart what is worth telling apart; a helper that calls itself has more. */
const longest = 50;

/** They evaluate modules, where Node's loader does not. */
const runners =
  /[\\/]node_modules[\\/](?:vite|vitest|vite-node|jest-[a-z-]+|@jest[\\/][a-z-]+|rolldown)[\\/]/;

/** Modules as texts inside a file, which webpack evaluates one by one in development. The file has them all, so its hash is theirs, too. */
const bundled = /^webpack[a-z-]*:/;

/** Of a place in a text that was made of a file and is evaluated, as vite does it, where nothing says which place of the file that is. */
const unmapped = " of what was made of it";

export function isUnmapped({ at }: Place): boolean {
  return at.endsWith(unmapped);
}

/**
 * @param skipped how many frames stand above the one that is asked for, this function's own left out
 * @returns undefined where that is not in a file; `script` says where it is
 */
export function callChain(skipped: number): CallChain | { readonly script: string } {
  const first = skipped + 1;
  const sites = util.getCallSites(longest + first, { sourceMap: false }).slice(first);
  const stack = shownPlaces(longest + first).slice(first);
  const places: Place[] = [];
  /** Where each is in the text that runs, if that says that it is made of another. */
  const running: (string | undefined)[] = [];
  /** Of modules that the text of the next file evaluates. */
  let within = "";
  let isEvaluating = false;
  let isEsm = false;
  for (const [index, { scriptName, lineNumber, columnNumber }] of sites.entries()) {
    isEvaluating = scriptName.startsWith("node:internal/modules/");
    const ran = `${lineNumber}:${columnNumber}`;
    const shown = stack[index] ?? { script: scriptName, at: ran };
    if (scriptName === "" && bundled.test(shown.script)) {
      within += `${shown.script}:${shown.at} in `;
      continue;
    }
    const url = urlOf(scriptName === "" ? evaluatedFile(shown.script) : scriptName);
    if (url === undefined || runners.test(scriptName)) break;
    // A call that a host runs: the chain is the user's. Some remotes are our own.
    if (places.length > 0 && url.startsWith(ownFolder.href)) break;
    isEsm = scriptName.startsWith("file:");
    const isSameFile = urlOf(shown.script) === url;
    // Evaluated text starts with what was put around it, so that a place that is mapped is another one.
    const isAsItRuns = scriptName === "" && shown.at === ran;
    const at = isSameFile && !isAsItRuns ? shown.at : driversText(`${shown.script}:${shown.at}`);
    places.push({ moduleUrl: driversOf(url), at: within + at + (isAsItRuns ? unmapped : "") });
    running.push(isSameFile ? undefined : ran);
    within = "";
  }
  if (places.length === 0) return { script: sites[0]?.scriptName ?? "" };
  // The text that runs is the file's own, then. What a compiler has put into several places of it has one place in the source.
  const known = isEvaluating
    ? places.map((place, index) => withRunning(place, running[index]))
    : places;
  return { places: known, isEvaluating, isEsm };
}

function withRunning(place: Place, at: string | undefined): Place {
  return at === undefined ? place : { ...place, at: `${place.at} (${at})` };
}

/** The code of the user that has called what runs now; undefined where that is in no file. */
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

/** What a text that is evaluated says that it is; "" if that is no file. */
function evaluatedFile(script: string): string {
  return script.includes("<anonymous>") ? "" : script;
}

function urlOf(script: string): string | undefined {
  if (script.startsWith("file:")) return script;
  const isPath = script.startsWith("/") || /^[A-Za-z]:[\\/]/.test(script);
  return isPath ? pathToFileURL(script).href : undefined;
}

/** By frame, as whoever prints stacks here maps them. */
function shownPlaces(
  depth: number,
): readonly ({ readonly script: string; readonly at: string } | undefined)[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = depth + 1;
  let stack: unknown;
  try {
    ({ stack } = new Error("a place"));
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  // Somebody may have made it anything.
  if (typeof stack !== "string") return [];
  // Functions of the language are in stacks, and not among call sites; this function's own frame goes, too.
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

/** For people: `file:line:column`. */
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
