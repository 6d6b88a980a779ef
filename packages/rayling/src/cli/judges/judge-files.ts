/**
 * Several judges of one run: each has a name, by its module, and a reward log of its own.
 */

import { basename, extname } from "node:path";

/** A judge by its flag: a reward function, or a file of several. */
export interface JudgeFlag {
  readonly reward?: string;
  readonly rewards?: string;
}

export interface NamedJudge extends JudgeFlag {
  /** The name of its module, behind it that of its export; with a number where two are alike. */
  readonly name: string;
}

export function namedJudges(judges: readonly JudgeFlag[]): NamedJudge[] {
  const taken = new Set<string>();
  return judges.map((judge) => {
    const wanted = nameOf(judge);
    let name = wanted;
    for (let count = 2; taken.has(name); count++) name = `${wanted}-${count}`;
    taken.add(name);
    return { ...judge, name };
  });
}

function nameOf({ reward, rewards }: JudgeFlag): string {
  const [, path = "", exported] = /^(.*?)(?::([\w$]+))?$/.exec(reward ?? rewards ?? "") ?? [];
  const stem = basename(path, extname(path));
  const name = exported === undefined || exported === "computeScore" ? stem : `${stem}-${exported}`;
  // "label" is the name of the labels in a comparison.
  const plain = name.replaceAll(/[^\w.-]+/g, "-");
  return plain === "" || plain === "label" ? `judge-${plain}` : plain;
}

/** Returns the reward log of a judge: rewards.rule.jsonl.gz for rewards.jsonl.gz. */
export function logOf(out: string, name: string): string {
  const [, ending = ""] = /((?:\.[^./\\]+)?(?:\.gz)?)$/.exec(out) ?? [];
  return `${out.slice(0, out.length - ending.length)}.${name}${ending}`;
}
