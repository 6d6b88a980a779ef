/** Command, commit, machine and settings of a run, by its last process. */

import type { StartLine } from "../files/run-lines.ts";
import type { Named } from "./run-figures.ts";

/** Returns what is known of it. */
export function runFacts(starts: readonly StartLine[]): readonly Named[] {
  const last = starts.at(-1);
  if (last === undefined) return [];
  const { projectName, experimentName, totalSteps, command, commit, node, host } = last;
  const name = [projectName, experimentName].filter((one) => one !== undefined).join(" / ");
  const facts: readonly (readonly [string, string | null | undefined])[] = [
    ["run", name],
    ["began", utc(starts[0]?.atMs)],
    ["went on", starts.length > 1 ? utc(last.atMs) : undefined],
    ["steps planned", totalSteps?.toString()],
    ["command", command],
    ["commit", commit],
    ["Node", node],
    ["machine", host],
  ];
  return facts.flatMap(([fact, text]) => (text ? [[fact, text] as const] : []));
}

function utc(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Returns the settings of its last process by their whole names, as JSON. */
export function runSettings(starts: readonly StartLine[]): Readonly<Record<string, string>> {
  const config = starts.at(-1)?.config ?? {};
  return Object.fromEntries(Object.entries(config).flatMap(([name, value]) => leaves(name, value)));
}

function leaves(name: string, value: unknown): readonly (readonly [string, string])[] {
  const isTree = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isTree) return [[name, JSON.stringify(value) ?? ""]];
  return Object.entries(value).flatMap(([key, one]) => leaves(`${name}.${key}`, one));
}
