/** Amounts of named resources ("CPU", later any name), rounded to ten-thousandths at every step so that fractions add up exactly. */

export type Resources = Readonly<Record<string, number>>;

/** Ray's precision: 0.0001. */
const precision = 10_000;

export function add(left: Resources, right: Resources, sign: 1 | -1 = 1): Resources {
  const sum: Record<string, number> = { ...left };
  for (const [name, amount] of Object.entries(right)) {
    sum[name] = Math.round(((sum[name] ?? 0) + sign * amount) * precision) / precision;
  }
  return sum;
}

export function covers(available: Resources, wanted: Resources): boolean {
  return Object.entries(wanted).every(([name, amount]) => amount <= (available[name] ?? 0));
}

/** What of `wanted` is missing, in words: "4 CPU of 2". */
export function shortage(available: Resources, wanted: Resources): string {
  return Object.entries(wanted)
    .filter(([name, amount]) => amount > (available[name] ?? 0))
    .map(([name, amount]) => `${amount} ${name} of ${available[name] ?? 0}`)
    .join(", ");
}
