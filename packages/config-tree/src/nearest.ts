import leven from "leven";

/** Returns the known name that is spelled most alike, if any is close. */
export function nearestOf(key: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(key.length / 3)) + 1;
  for (const one of known) {
    // A key in the wrong section is close, too.
    const isMoved = one.split(".").at(-1) === key.split(".").at(-1);
    const distance = isMoved ? 1 : leven(key, one);
    if (distance < least) [nearest, least] = [one, distance];
  }
  return nearest;
}
