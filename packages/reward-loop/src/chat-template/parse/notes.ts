/** Types that the parsers of expressions and of statements share. */

import type { Value } from "../python/values.ts";
import type { CallArguments } from "./syntax.ts";

/** Things that expressions report to the parser of statements. */
export interface Notes {
  /** A name is read. */
  readonly reads: (name: string) => void;
  /** A filter or a test is used. */
  readonly uses: (kind: "filter" | "test", name: string, line: number) => void;
  /** Unknown names so far; those of a conditional expression are removed again. */
  readonly unknown: Unknown[];
}

/** A filter or a test that jinja2 does not have. */
export interface Unknown {
  readonly kind: "filter" | "test";
  readonly name: string;
  readonly line: number;
}

export const noArguments: CallArguments = {
  positional: [],
  keyword: [],
  spread: undefined,
  keywordSpread: undefined,
};

/** Words that are values, not names. */
export const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);
