/**
 * Prompts with places for values: `{{solution}}`. A value is put in unchanged and never read for
 * places again.
 */

import { jsonText } from "../client/json-text.ts";
import { JudgePromptError } from "./judge-error.ts";

const places = /\{\{\s*([\w.-]+)\s*\}\}/g;

export type PromptValues = Readonly<Record<string, unknown>>;

/**
 * Fills in values: texts unchanged, all else as JSON. Throws JudgePromptError for a place without a
 * value.
 */
export function fillTemplate(template: string, values: PromptValues): string {
  return template.replaceAll(places, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const text = typeof value === "string" ? value : jsonText(value);
    if (text !== undefined) return text;
    const known = Object.keys(values).join(", ") || "none";
    throw new JudgePromptError(
      `The prompt has a place {{${name}}}, and no value is given for it. Given: ${known}.`,
    );
  });
}

/** Whether the template has a place for this value. */
export function hasPlace(template: string, name: string): boolean {
  return [...template.matchAll(places)].some(([, one]) => one === name);
}
