/**
 * The names of a score function's arguments: camelCase here, verl's in snake_case, with any suffix
 * of a compiler (`ground_truth_1`). verl passes them by keyword, so a name says more than a
 * position.
 */

import leven from "leven";

/** In verl's order; arguments of its `batch` functions are lists of them. */
export const orderedArguments = ["dataSource", "solutionStr", "groundTruth", "extraInfo"] as const;
export const listArguments = ["dataSources", "solutionStrs", "groundTruths", "extraInfos"] as const;

/**
 * These arguments exist only in some runs, or for some samples: elsewhere they are undefined, which
 * is no mistake.
 */
export const optionalArguments = [
  "rewardRouterAddress",
  "rewardRouterToken",
  "rewardModelTokenizer",
  "rewardModels",
  "signal",
  "rawPrompt",
  "step",
  "lane",
  "uid",
  "group",
] as const;

/** Returns verl's spelling of a name. */
export function snakeOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Returns the other spelling of a name: verl's for `formatScore`, `formatScore` for verl's.
 * Undefined for a name that is neither, and for one of a single word.
 */
export function otherSpellingOf(name: string): string | undefined {
  if (/^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name)) {
    return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  }
  return /^[a-z][a-z0-9]*([A-Z][a-z0-9]*)+$/.test(name) ? snakeOf(name) : undefined;
}

/** Returns whether a name is that of a keyword, in one of its spellings. */
export function isSpelt(name: string, keyword: string): boolean {
  return name === keyword || name === otherSpellingOf(keyword);
}

export const allArguments: readonly string[] = [
  ...orderedArguments,
  ...listArguments,
  ...optionalArguments,
];

const byPlainName: ReadonlyMap<string, string> = new Map(
  allArguments.map((one) => [plain(one), one]),
);

const bySnakeName: ReadonlyMap<string, string> = new Map(
  allArguments.map((one) => [snakeOf(one), one]),
);

/**
 * Returns the argument that a parameter is named after: `ground_truth`, `groundTruth` and
 * `_groundTruth_1` are one.
 */
export function argumentNamed(parameter: string): string | undefined {
  return (
    byPlainName.get(plain(parameter)) ?? byPlainName.get(plain(parameter.replace(/_?\d+$/, "")))
  );
}

/** Translates verl's names of keywords to the names here. */
export function withOwnNames(
  keywords: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(keywords);
  return Object.fromEntries(
    entries.map(([name, value]) => [bySnakeName.get(name) ?? name, value] as const),
  );
}

/** Returns the argument, or the keyword, that an unknown name may mean. */
export function nearestArgument(name: string, keywords: readonly string[]): string | undefined {
  const meant = rolesOf(name);
  return (
    nearestOf(name, [...orderedArguments, ...optionalArguments, ...keywords]) ??
    argumentsWithRoles.find((one) => meant.has(one))
  );
}

/** Returns the name that a misspelt one may mean. */
export function nearestOf(name: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = 1 + Math.max(2, Math.floor(name.length / 3));
  for (const one of names) {
    const distance = leven(plain(name), plain(one));
    if (distance < least) [nearest, least] = [one, distance];
  }
  return nearest;
}

/** The prompt is none of verl's four: as the first parameter it would be the data source. */
const argumentsWithRoles = [...orderedArguments, "rawPrompt"] as const;

/** Words for the arguments in user code. */
const roles: Readonly<Record<(typeof argumentsWithRoles)[number], RegExp>> = {
  dataSource: /source|dataset|^ds$/,
  solutionStr: /solution|response|answer|completion|output|predict|generat|text|repl(y|ies)/,
  groundTruth: /truth|label|target|reference|expect|gold|answer|correct|^gt$/,
  extraInfo: /info|extra|meta/,
  rawPrompt: /prompt|question|query|message|instruct|task|problem|conversation|^chat|^inputs?$/,
};

/** Returns which of verl's four arguments, or the prompt, a name may mean. */
export function rolesOf(name: string): ReadonlySet<string> {
  const plainName = plain(name);
  return new Set(argumentsWithRoles.filter((one) => roles[one].test(plainName)));
}

/**
 * Returns whether a name says nothing about its parameter: one letter, as a bundler gives, or one
 * that marks what is not used.
 */
export function saysNothing(name: string): boolean {
  return /^[_$]|^[a-z]\d*$|^(arg|param|unused|ignored?)\d*$/i.test(name);
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}
