/**
 * Settings that weights are learned with, as numbers beside them. Sizes of weights do not show all
 * of these: another alphabet of as many characters, or other heads, would be accepted, and the
 * weights would mean something else.
 *
 * States of earlier versions have none, and are taken as they are.
 */

import { TrainerInputError } from "../../errors.ts";
import type { Weights } from "./optimizer/adamw.ts";
import type { ResolvedTinySettings } from "./tiny-settings.ts";

const counts = ["contextLength", "layers", "width", "heads"] as const;
const texts = ["alphabet", "separator"] as const;

type Name = (typeof counts)[number] | (typeof texts)[number];

/** Settings that say what the weights mean. */
export type LearnedSettings = Pick<ResolvedTinySettings, Name>;

const keys: Readonly<Record<Name, string>> = {
  alphabet:
    "rayling.policy_kwargs.alphabet; without it, the characters of data.train_files and data.val_files",
  separator: "rayling.policy_kwargs.separator",
  contextLength:
    "rayling.policy_kwargs.context_length; without it, the lengths of a prompt and a response together",
  layers: "rayling.policy_kwargs.layers",
  width: "rayling.policy_kwargs.width",
  heads: "rayling.policy_kwargs.heads",
};

const stateName = (name: Name): string => `settings.${name}`;

/**
 * Returns the settings as arrays of a state: a text is its code points, which float32 has exactly.
 */
export function settingsAsState(settings: LearnedSettings): Weights {
  return Object.fromEntries([
    ...counts.map((name) => [stateName(name), Float32Array.of(settings[name])]),
    ...texts.map((name) => [
      stateName(name),
      Float32Array.from(settings[name], (character) => character.codePointAt(0) ?? NaN),
    ]),
  ]);
}

/** Returns the names of settings that the state has. */
export function settingsIn(optimizer: Weights): string[] {
  return [...counts, ...texts].map(stateName).filter((name) => name in optimizer);
}

/** Throws TrainerInputError, which names the setting, where the state was learned with another. */
export function checkLearnedSettings(settings: LearnedSettings, optimizer: Weights): void {
  for (const name of counts) {
    const learned = optimizer[stateName(name)]?.[0];
    if (learned === undefined || learned === settings[name]) continue;
    throw other(name, `${settings[name]}, and the weights were learned with ${learned}`);
  }
  for (const name of texts) {
    const points = optimizer[stateName(name)];
    if (points === undefined) continue;
    const learned = Array.from(points, characterOf).join("");
    if (learned === settings[name]) continue;
    throw other(name, difference(settings[name], learned));
  }
}

function other(name: Name, problem: string): TrainerInputError {
  const message = `${name} (${keys[name]}) is ${problem}: with another one they mean something else`;
  return new TrainerInputError(name, message);
}

function characterOf(point: number): string {
  const isPoint = Number.isSafeInteger(point) && point >= 0 && point <= 0x10_ff_ff;
  return isPoint ? String.fromCodePoint(point) : "\uFFFD";
}

/** Longer texts are not repeated in an error. */
const longestShown = 400;

function difference(now: string, learned: string): string {
  const shown = (text: string): string =>
    text.length <= longestShown ? ` ${JSON.stringify(text)}` : "";
  const lacked = without(learned, now);
  const added = without(now, learned);
  const parts = [
    ...(lacked === "" ? [] : [`lacks ${JSON.stringify(lacked.slice(0, longestShown))}`]),
    ...(added === "" ? [] : [`has ${JSON.stringify(added.slice(0, longestShown))} besides`]),
  ];
  const how = parts.length === 0 ? "has these characters in another order" : parts.join(" and ");
  return `another one than that which the weights were learned with,${shown(learned)}: it ${how}`;
}

function without(text: string, known: string): string {
  const left = new Set(known);
  return Array.from(text)
    .filter((character) => !left.has(character))
    .join("");
}
