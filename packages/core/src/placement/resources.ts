/**
 * Exact amounts of named resources: whole ten-thousandths (Ray's precision), or whole bytes for
 * memory, whose ten-thousandths would exceed the range of exact numbers. Everything inside
 * placement/ counts in these units; users see `Amounts`.
 */
import type { Amounts } from "../rpc/resource-demand.ts";

export type Units = ReadonlyMap<string, number>;

export function toUnits(amounts: Amounts): Units {
  return new Map(
    Object.entries(amounts).map(([name, amount]) => [name, Math.round(amount * scaleOf(name))]),
  );
}

/** @param least the lowest shown amount: a node may be overdrawn for a while */
export function toAmounts(units: Units, least: number = -Infinity): Amounts {
  return Object.fromEntries(
    [...units].map(([name, amount]) => [name, Math.max(least, amount / scaleOf(name))]),
  );
}

/** Changes `target` in place. */
export function change(target: Map<string, number>, by: Units, sign: 1 | -1): void {
  for (const [name, units] of by) target.set(name, (target.get(name) ?? 0) + sign * units);
}

/**
 * Whether the wanted amounts are available. An amount of zero always is, even when the node is
 * overdrawn.
 */
export function covers(available: Units, wanted: Units): boolean {
  for (const [name, units] of wanted) {
    if (units > 0 && units > (available.get(name) ?? 0)) return false;
  }
  return true;
}

/** Returns the missing amounts as a text: "4 CPU of 2". */
export function shortage(available: Units, wanted: Units): string {
  return [...wanted]
    .filter(([name, units]) => units > 0 && units > (available.get(name) ?? 0))
    .map(([name, units]) => {
      const scale = scaleOf(name);
      return `${units / scale} ${name} of ${Math.max(0, available.get(name) ?? 0) / scale}`;
    })
    .join(", ");
}

function scaleOf(name: string): number {
  return name === "memory" ? 1 : 10_000;
}
