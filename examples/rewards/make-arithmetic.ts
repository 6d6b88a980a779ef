// node examples/rewards/make-arithmetic.ts
//
// Writes examples/data/arithmetic-solutions.jsonl: 640 word problems with four solutions each, in
// the shape of GSM8K's example_model_solutions.jsonl. Same seed, same bytes. is_correct is true by
// construction: each solution is worked out with or without a mistake, and a mistaken one never
// ends in the right number.

import { mkdirSync, renameSync, writeFileSync } from "node:fs";

interface Solution {
  readonly is_correct: boolean;
  readonly solution: string;
}

/** Works one step out; the value it returns is the one that the next step goes on with. */
type Step = (text: string, expression: string, value: number) => number;

interface Problem {
  readonly question: string;
  readonly money: boolean;
  readonly solve: (step: Step) => number;
}

const PROBLEMS = 640;
const SOLVERS = { solver_a: 0.35, solver_b: 0.55, solver_c: 0.75, solver_d: 0.9 };
const NAMES = [
  "Amira",
  "Bela",
  "Chen",
  "Dana",
  "Emeka",
  "Freya",
  "Goran",
  "Hana",
  "Ines",
  "Jonas",
  "Kavya",
  "Luca",
];
const THINGS = [
  "apples",
  "pencils",
  "stickers",
  "tiles",
  "postcards",
  "marbles",
  "candles",
  "seedlings",
];

let state = 20_260_101;
const random = (): number => {
  // mulberry32
  state = (state + 0x6d2b79f5) | 0;
  let bits = Math.imul(state ^ (state >>> 15), 1 | state);
  bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
  return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
};
const integer = (low: number, high: number): number =>
  low + Math.floor(random() * (high - low + 1));
const pick = <Item>(items: readonly Item[]): Item => items[integer(0, items.length - 1)]!;

// Money is counted in cents, so that every value is a whole number until it is printed.
const grouped = (value: number): string =>
  value.toLocaleString("en-US", { maximumFractionDigits: 2 });
const dollars = (cents: number): string =>
  `$${(cents / 100).toLocaleString("en-US", { minimumFractionDigits: 2 })}`;

const TEMPLATES: readonly (() => Problem)[] = [
  () => {
    const [boxes, each, gone, who, thing] = [
      integer(3, 60),
      integer(12, 144),
      integer(5, 30),
      pick(NAMES),
      pick(THINGS),
    ];
    return {
      question: `${who} has ${boxes} boxes of ${each} ${thing} and gives ${gone} ${thing} away. How many ${thing} are left?`,
      money: false,
      solve: (step) => {
        const all = step(`The boxes hold`, `${boxes}*${each}`, boxes * each);
        return step(`After giving some away there are`, `${all}-${gone}`, all - gone);
      },
    };
  },
  () => {
    const [count, price, paid, who, thing] = [
      integer(2, 19),
      integer(15, 1299),
      integer(260, 400) * 100,
      pick(NAMES),
      pick(THINGS),
    ];
    return {
      question: `${who} buys ${count} bags of ${thing} at ${dollars(price)} each and pays with ${dollars(paid)}. How much change is there?`,
      money: true,
      solve: (step) => {
        const cost = step(`Together they cost`, `${count}*${price / 100}`, count * price);
        return step(`The change is`, `${paid / 100}-${cost / 100}`, paid - cost);
      },
    };
  },
  () => {
    const [hours, wage, weeks, rent, who] = [
      integer(8, 40),
      integer(31, 90) * 50,
      integer(2, 12),
      integer(20, 99) * 100,
      pick(NAMES),
    ];
    return {
      question: `${who} works ${hours} hours a week for ${dollars(wage)} an hour. After ${weeks} weeks ${who} pays ${dollars(rent)} for a course. How many dollars remain?`,
      money: true,
      solve: (step) => {
        const weekly = step(`One week brings`, `${hours}*${wage / 100}`, hours * wage);
        const earned = step(`All weeks bring`, `${weekly / 100}*${weeks}`, weekly * weeks);
        return step(`What remains is`, `${earned / 100}-${rent / 100}`, earned - rent);
      },
    };
  },
  () => {
    const [seats, rows, halls, empty] = [
      integer(14, 40),
      integer(12, 45),
      integer(2, 9),
      integer(40, 160),
    ];
    return {
      question: `A theatre has ${halls} halls with ${rows} rows of ${seats} seats. Tonight ${empty} seats stay empty. How many people came?`,
      money: false,
      solve: (step) => {
        const hall = step(`A hall has`, `${rows}*${seats}`, rows * seats);
        const all = step(`All halls have`, `${hall}*${halls}`, hall * halls);
        return step(`The people are`, `${all}-${empty}`, all - empty);
      },
    };
  },
  () => {
    const [start, down, up, who] = [integer(-5, 9), integer(10, 25), integer(1, 8), pick(NAMES)];
    return {
      question: `${who} reads ${start} degrees in the evening. It falls by ${down} degrees at night and rises by ${up} by noon. What does ${who} read at noon?`,
      money: false,
      solve: (step) => {
        const night = step(`At night it is`, `${start}-${down}`, start - down);
        return step(`At noon it is`, `${night}+${up}`, night + up);
      },
    };
  },
  () => {
    const [share, friends, tip, who] = [
      integer(450, 4900),
      integer(3, 9),
      integer(1, 12) * 75,
      pick(NAMES),
    ];
    const price = share * friends - tip;
    return {
      question: `A dinner costs ${dollars(price)}. ${who} and ${friends - 1} friends add a tip of ${dollars(tip)} and share evenly. How much does ${who} pay?`,
      money: true,
      solve: (step) => {
        const all = step(`With the tip it is`, `${price / 100}+${tip / 100}`, price + tip);
        return step(`One share is`, `${all / 100}/${friends}`, Math.round(all / friends));
      },
    };
  },
  () => {
    const [trucks, crates, weight, lost] = [
      integer(11, 95),
      integer(20, 140),
      integer(12, 60),
      integer(100, 900),
    ];
    return {
      question: `${trucks} trucks bring ${crates} crates of ${weight} kg of plums each; ${lost} kg spoil on the way. How many kg arrive in order?`,
      money: false,
      solve: (step) => {
        const truck = step(`A truck brings`, `${crates}*${weight}`, crates * weight);
        const all = step(`All trucks bring`, `${truck}*${trucks}`, truck * trucks);
        return step(`In order are`, `${grouped(all)}-${lost}`, all - lost);
      },
    };
  },
  () => {
    const [price, percent, who, thing] = [
      integer(12, 400) * 20,
      pick([5, 10, 15, 20, 25, 40]),
      pick(NAMES),
      pick(THINGS),
    ];
    return {
      question: `A crate of ${thing} costs ${dollars(price)} and is sold at ${percent}% off. What does ${who} pay for it, in dollars?`,
      money: true,
      solve: (step) => {
        const off = step(
          `The discount is`,
          `${price / 100}*${percent}/100`,
          (price * percent) / 100,
        );
        return step(`The price becomes`, `${price / 100}-${off / 100}`, price - off);
      },
    };
  },
];

/** A problem worked out; `slipAt` is the step whose value comes out wrong. */
function work(
  problem: Problem,
  slipAt = -1,
): { lines: string[]; values: number[]; result: number } {
  const lines: string[] = [];
  const values: number[] = [];
  const show = problem.money ? dollars : grouped;
  const result = problem.solve((text, expression, value) => {
    const slip = values.length === slipAt ? pick([1, -1, 10, -10]) * (problem.money ? 100 : 1) : 0;
    values.push(value + slip);
    lines.push(`${text} ${expression} = ${show(value + slip)}`);
    return value + slip;
  });
  return { lines, values, result };
}

const answerLine = ({ money }: Problem, value: number): string => {
  if (!money) return `A: ${pick([String(value), grouped(value)])}`;
  return `A: ${pick([String(value / 100), (value / 100).toFixed(2), dollars(value).replace("$-", "-$"), grouped(value / 100)])}`;
};

/** Ways to go wrong; each ends without the right number behind its last "A:". */
const MISTAKES: readonly ((problem: Problem) => string[])[] = [
  (problem) => {
    const truth = work(problem);
    const slipped = work(problem, integer(0, truth.values.length - 1));
    // A slip can vanish in a division; then the answer itself is off by one.
    return [
      ...slipped.lines,
      answerLine(problem, slipped.result === truth.result ? truth.result + 100 : slipped.result),
    ];
  },
  (problem) => work(problem).lines,
  (problem) => [...work(problem).lines.slice(0, -1), "So the answer is"],
  (problem) => {
    const { lines, values, result } = work(problem);
    return [...lines, answerLine(problem, values[0] === result ? result + 1 : values[0]!)];
  },
  (problem) => {
    const { lines, result } = work(problem);
    return [
      ...lines,
      answerLine(problem, result),
      "No, one has to be added.",
      answerLine(problem, result + 100),
    ];
  },
  (problem) => [...work(problem).lines, `${answerLine(problem, work(problem).result)} or more`],
];

function right(problem: Problem): string[] {
  const { lines, result } = work(problem);
  const secondThought =
    random() < 0.1 ? [answerLine(problem, result + 300), "That is not right, once more."] : [];
  return [...secondThought, ...lines, answerLine(problem, result)];
}

const records = Array.from({ length: PROBLEMS }, () => {
  const problem = pick(TEMPLATES)();
  const ground_truth = right(problem).join("\n");
  const solutions = Object.entries(SOLVERS).map(([solver, skill]): [string, Solution] => {
    const is_correct = random() < skill;
    return [
      solver,
      { is_correct, solution: (is_correct ? right(problem) : pick(MISTAKES)(problem)).join("\n") },
    ];
  });
  return { question: problem.question, ground_truth, ...Object.fromEntries(solutions) };
});

const folder = new URL("../data/", import.meta.url);
mkdirSync(folder, { recursive: true });
const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
// A reader that comes meanwhile reads all of it.
const fresh = new URL(`arithmetic-solutions.${process.pid}`, folder);
writeFileSync(fresh, text);
renameSync(fresh, new URL("arithmetic-solutions.jsonl", folder));
console.log(
  `${records.length} problems, ${records.length * Object.keys(SOLVERS).length} solutions, ${text.length} bytes in examples/data/arithmetic-solutions.jsonl`,
);
console.log(`for example: ${records[0]?.question}`);
