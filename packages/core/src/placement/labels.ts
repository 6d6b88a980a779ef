/**
 * Matches the labels of a node against conditions.
 */
import type { LabelCondition, LabelConditions } from "../rpc/resource-demand.ts";

export type Labels = Readonly<Record<string, string>>;

export function meets(labels: Labels, conditions: LabelConditions): boolean {
  for (const name in conditions) {
    const condition = conditions[name];
    if (condition === undefined || !Object.hasOwn(conditions, name)) continue;
    if (!holds(Object.hasOwn(labels, name) ? labels[name] : undefined, condition)) return false;
  }
  return true;
}

/** Returns a text such as "zone in (a, b)", for a message about what is missing. */
export function describe(conditions: LabelConditions): string {
  return Object.entries(conditions)
    .map(([name, condition]) => {
      if ("in" in condition) return `${name} in (${condition.in.join(", ")})`;
      if ("notIn" in condition) return `${name} not in (${condition.notIn.join(", ")})`;
      return "exists" in condition ? name : `no ${name}`;
    })
    .join(" and ");
}

function holds(label: string | undefined, condition: LabelCondition): boolean {
  if ("in" in condition) return label !== undefined && condition.in.includes(label);
  if ("notIn" in condition) return label === undefined || !condition.notIn.includes(label);
  return "exists" in condition ? label !== undefined : label === undefined;
}
