/**
 * The arguments of a score function and the names that they go by: ours in camelCase, verl's in snake_case, whatever a compiler puts behind them (`ground_truth_1`).
 * verl passes them by keyword, so that a name says more than a place.
 */

import leven from "leven";

/** In verl's order; those of its `batch` functions are lists of them. */
export const orderedArguments = ["dataSource", "solutionStr", "groundTruth", "extraInfo"] as const;
export const listArguments = ["dataSources", "solutionStrs", "groundTruths", "extraInfos"] as const;

/** They are there in some runs, or of some samples: where they are not they are undefined, and nobody's mistake. */
export const optionalArguments = [
  "rewardRouterAddress",
  "rewardRouterToken",
  "rewardModelTokenizer",
  "signal",
  "rawPrompt",
  "step",
  "lane",
  "uid",
  "group",
] as const;

/** verl's spelling of each. */
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

/** The argument that a parameter is named after: `ground_truth`, `groundTruth` and `_groundTruth_1` are one. */
export function argumentNamed(parameter: string): string | undefined {
  return (
    byPlainName.get(plain(parameter)) ?? byPlainName.get(plain(parameter.replace(/_?\d+$/, "")))
  );
}

/** Keywords by our names, where verl's are written. */
export function withOwnNames(
  keywords: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(keywords);
  return Object.fromEntries(
    entries.map(([name, value]) => [bySnakeName.get(name) ?? name, value] as const),
  );
}

/** The argument, or the keyword, that somebody may have meant by a name that is none. */
export function nearestArgument(name: string, keywords: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = 1 + Math.max(2, Math.floor(name.length / 3));
  for (const one of [...orderedArguments, ...optionalArguments, ...keywords]) {
    const distance = leven(plain(name), plain(one));
    if (distance < least) [nearest, least] = [one, distance];
  }
  return nearest ?? orderedArguments.find((one) => rolesOf(name).has(one));
}

/** What people call them. A name of which nothing is known says nothing. */
const roles: Readonly<Record<(typeof orderedArguments)[number], RegExp>> = {
  dataSource: /source|dataset/,
  solutionStr: /solution|response|answer|completion|output|predict|generat|text/,
  groundTruth: /truth|label|target|reference|expect|gold|answer|^gt$/,
  extraInfo: /info|extra|meta/,
};

/** Which of verl's four a name may be meant for. */
export function rolesOf(name: string): ReadonlySet<string> {
  const plainName = plain(name);
  return new Set(orderedArguments.filter((one) => roles[one].test(plainName)));
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}
