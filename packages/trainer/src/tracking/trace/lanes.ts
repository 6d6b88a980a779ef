/**
 * Lanes of a trace: slices of one lane lie within each other or apart; slices that overlap go to
 * further lanes.
 */

export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Assigns slices in order of time, outer ones first, each to the first lane that it fits.
 *
 * @param mayNest whether a slice may lie within another
 */
export function lanesOf<Slice extends Span>(
  slices: readonly Slice[],
  { mayNest }: { readonly mayNest: boolean },
): readonly (readonly Slice[])[] {
  const lanes: { readonly slices: Slice[]; readonly open: Slice[] }[] = [];
  const sorted = slices.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs);
  for (const slice of sorted) {
    const lane = lanes.find(({ open }) => {
      let around = open.at(-1);
      while (around !== undefined && around.endMs <= slice.startMs) {
        open.pop();
        around = open.at(-1);
      }
      return around === undefined || (mayNest && around.endMs >= slice.endMs);
    });
    if (lane === undefined) lanes.push({ slices: [slice], open: [slice] });
    else {
      lane.slices.push(slice);
      lane.open.push(slice);
    }
  }
  return lanes.map((lane) => lane.slices);
}
