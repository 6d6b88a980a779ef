/** What each measure is to come to, and the most that it may be until then: those only go down. */
import type { Measure } from "./measure.ts";
import { bannedWords } from "./words.ts";

export interface Aim {
  readonly what: string;
  readonly aim: number;
  readonly most: number;
}

export const aims: Readonly<Record<Measure, Aim>> = {
  "files in a room": { what: "files more than 12 in rooms", aim: 0, most: 0 },
  "lines of a function": { what: "functions of more than 60 lines", aim: 0, most: 0 },
  "members of a class": { what: "classes of more than 30 members", aim: 0, most: 1 },
  parameters: { what: "functions of more than 4 parameters", aim: 0, most: 0 },
  "type assertions": { what: "type assertions (as)", aim: 250, most: 217 },
  "comments that begin in the middle": {
    what: "comments that begin with Of, Those, The same, What",
    aim: 0,
    most: 0,
  },
  "comment lines too wide": { what: "comments with lines beyond column 100", aim: 0, most: 0 },
  whoever: { what: "comments that say whoever", aim: 0, most: 0 },
  "words of a README": {
    what: "READMEs of more than 900 words, or 450 of a package",
    aim: 0,
    most: 0,
  },
  "banned words": {
    what: "banned words in names (test/house/words.ts)",
    aim: 0,
    most: Object.values(bannedWords).reduce((sum, { most }) => sum + most, 0),
  },
  "hover docs": { what: "exported names and members without a hover doc", aim: 0, most: 0 },
};
