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
  let nearest: string | undefined;
  let least = 1 + Math.max(2, Math.floor(name.length / 3));
  for (const one of [...orderedArguments, ...optionalArguments, ...keywords]) {
    const distance = leven(plain(name), plain(one));
    if (distance < least) [nearest, least] = [one, distance];
  }
  const meant = rolesOf(name);
  return nearest ?? argumentsWithRoles.find((one) => meant.has(one));
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
