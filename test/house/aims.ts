/** The most that each measure may come to, and the places that may be over it. */
import type { Measure } from "./measure.ts";

export interface Aim {
  readonly what: string;
  readonly most: number;
}

export const aims: Readonly<Record<Measure, Aim>> = {
  "files in a room": { what: "files more than 12 in rooms", most: 0 },
  "lines of a function": { what: "functions of more than 60 lines", most: 0 },
  "members of a class": { what: "classes of more than 30 members", most: 0 },
  parameters: { what: "functions of more than 4 parameters", most: 0 },
  "type assertions": { what: "type assertions (as)", most: 250 },
  "comments that begin in the middle": {
    what: "comments that begin with Of, Those, The same, What",
    most: 0,
  },
  "comment lines too wide": { what: "comments with lines beyond column 100", most: 0 },
  whoever: { what: "comments that say whoever", most: 0 },
  "words of a README": { what: "READMEs of more than 900 words, or 450 of a package", most: 0 },
  "banned words": { what: "banned words in names (test/house/words.ts)", most: 0 },
  "hover docs": { what: "exported names and members without a hover doc", most: 0 },
};

/** Places that are over a limit, each with its reason: at most ten. */
export const exceptions: readonly (readonly [measure: Measure, what: string, reason: string])[] = [
  [
    "members of a class",
    "Execution",
    "one object for each call that waits: parts of it would be more objects for each call",
  ],
];

/** Whether that finding is one of the exceptions. */
export function isException(measure: Measure, what: string): boolean {
  return exceptions.some(([of, name]) => of === measure && name === what);
}
