import leven from "leven";

/** The known one that is written most alike, if one is at all. */
export function nearestOf(key: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(key.length / 3)) + 1;
  for (const one of known) {
    // A key that was put in the wrong place is alike, too.
    const isMoved = one.split(".").at(-1) === key.split(".").at(-1);
    const distance = isMoved ? 1 : leven(key, one);
    if (distance < least) [nearest, least] = [one, distance];
  }
  return nearest;
}
