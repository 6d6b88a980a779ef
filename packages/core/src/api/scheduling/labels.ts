/**
 * Label selectors as users write them:
 * `{ zone: "a", disk: "!hdd", tier: "in(1,2)", room: "!in(3,4)" }`.
 */
import type { LabelCondition, LabelConditions } from "../../rpc/resource-demand.ts";
import type { Check } from "../../shared/options.ts";
import { isRecord } from "../../shared/options.ts";

/** A condition for each label: a value, `!value`, `in(a,b)` or `!in(a,b)`; all must hold. */
export type LabelSelector = Readonly<Record<string, string>>;

export function toConditions(selector: LabelSelector): LabelConditions {
  return Object.fromEntries(
    Object.entries(selector).map(([label, text]) => [label, toCondition(text)]),
  );
}

export const labelSelector: Check = (value) => {
  if (!isTexts(value)) return "must map labels to texts";
  for (const [label, text] of Object.entries(value)) {
    if (valuesOf(text).some((one) => one === "" || /[(),!]/.test(one))) {
      return `has a wrong selector for ${label} (${JSON.stringify(text)}; it may be value, !value, in(a,b) or !in(a,b))`;
    }
  }
  return undefined;
};

export const labels: Check = (value) => {
  if (!isTexts(value)) return "must map labels to texts";
  const wrong = Object.entries(value).find(
    ([name, text]) => name === "" || /[(),!]/.test(text) || hasControls.test(name + text),
  );
  return wrong === undefined
    ? undefined
    : `has a label that no selector could name (${JSON.stringify(wrong[0])}: ${JSON.stringify(wrong[1])})`;
};

/** Control characters would break lines and tables that show them. */
// eslint-disable-next-line no-control-regex
const hasControls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

function toCondition(text: string): LabelCondition {
  const values = valuesOf(text);
  return text.startsWith("!") ? { notIn: values } : { in: values };
}

function valuesOf(text: string): readonly string[] {
  const positive = text.startsWith("!") ? text.slice(1) : text;
  const list = /^in\((.*)\)$/.exec(positive)?.[1];
  return list === undefined ? [positive] : list.split(",").map((one) => one.trim());
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.values(value).every((one) => typeof one === "string");
}
