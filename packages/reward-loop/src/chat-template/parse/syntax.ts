/** The tree of a template: what its parser makes and its evaluation reads. Plain data. */

import type { Value } from "../python/values.ts";

export interface CallArguments {
  readonly positional: readonly Expression[];
  readonly keyword: readonly (readonly [string, Expression])[];
  /** `*items` and `**mapping`. */
  readonly spread: Expression | undefined;
  readonly keywordSpread: Expression | undefined;
}

export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";
export type CompareOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

export interface SliceBounds {
  readonly start: Expression | undefined;
  readonly stop: Expression | undefined;
  readonly step: Expression | undefined;
}

export type Expression = { readonly line: number } & (
  | { readonly kind: "constant"; readonly value: Value }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "tuple" | "list"; readonly items: readonly Expression[] }
  | { readonly kind: "dict"; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "attribute"; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly object: Expression; readonly key: Expression }
  | { readonly kind: "slice"; readonly object: Expression; readonly bounds: SliceBounds }
  | { readonly kind: "call"; readonly callee: Expression; readonly given: CallArguments }
  | FilterExpression
  | {
      readonly kind: "test";
      readonly value: Expression;
      readonly name: string;
      readonly given: CallArguments;
    }
  | { readonly kind: "not" | "negative" | "positive"; readonly value: Expression }
  | {
      readonly kind: "binary";
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: "and" | "or"; readonly left: Expression; readonly right: Expression }
  | { readonly kind: "concat"; readonly parts: readonly Expression[] }
  | {
      readonly kind: "compare";
      readonly first: Expression;
      readonly rest: readonly {
        readonly operator: CompareOperator;
        readonly value: Expression;
      }[];
    }
  | {
      readonly kind: "condition";
      readonly test: Expression;
      readonly value: Expression;
      readonly otherwise: Expression | undefined;
    }
);

export interface FilterExpression {
  readonly kind: "filter";
  readonly line: number;
  /** Undefined: of a block, whose text it gets. */
  readonly value: Expression | undefined;
  readonly name: string;
  readonly given: CallArguments;
}

export type Target =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "member"; readonly namespace: string; readonly name: string }
  | { readonly kind: "tuple"; readonly targets: readonly Target[] };

export interface Parameter {
  readonly name: string;
  readonly standard: Expression | undefined;
}

/** The body of a macro or of a call block. */
export interface MacroBody {
  /** Undefined: of a call block. */
  readonly name: string | undefined;
  readonly parameters: readonly Parameter[];
  readonly body: readonly Statement[];
  /** The names that it reads, as `caller`, `kwargs` and `varargs`. */
  readonly reads: ReadonlySet<string>;
}

export type Statement = { readonly line: number } & (
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly value: Expression }
  | {
      readonly kind: "if";
      readonly test: Expression;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | ForStatement
  | { readonly kind: "set"; readonly target: Target; readonly value: Expression }
  | {
      readonly kind: "set-block";
      readonly target: Target;
      readonly filter: FilterExpression | undefined;
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "with";
      readonly values: readonly (readonly [Target, Expression])[];
      readonly body: readonly Statement[];
    }
  | { readonly kind: "macro"; readonly macro: MacroBody & { readonly name: string } }
  | {
      readonly kind: "call-block";
      readonly callee: Expression;
      readonly given: CallArguments;
      readonly caller: MacroBody;
    }
  | {
      readonly kind: "filter-block";
      readonly filter: FilterExpression;
      readonly body: readonly Statement[];
    }
  /** transformers' tag around what the assistant said: a scope of its own, and else nothing. */
  | { readonly kind: "generation"; readonly body: readonly Statement[] }
  | { readonly kind: "break" | "continue" }
);

export interface ForStatement {
  readonly kind: "for";
  readonly line: number;
  readonly target: Target;
  readonly iterable: Expression;
  readonly test: Expression | undefined;
  readonly isRecursive: boolean;
  readonly body: readonly Statement[];
  readonly otherwise: readonly Statement[];
}
