/**
 * Describes the allowed values of a key in words, from its JSON Schema.
 */

import { z } from "zod";

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly prefixItems?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly [key: string]: unknown;
}

/** Returns the schema of the input, before transformations. */
export function schemaOf(type: z.ZodType): JsonSchema {
  return z.toJSONSchema(type, { io: "input", unrepresentable: "any" }) as JsonSchema;
}

/** Returns words such as "a whole number of at least 1, or null". */
export function wordsOf(schema: JsonSchema): string {
  const { anyOf, enum: values, const: only, type, items, prefixItems } = schema;
  if (typeof type === "object") {
    return type.map((one) => wordsOf({ ...schema, type: one })).join(", or ");
  }
  if (anyOf !== undefined) return anyOf.map(wordsOf).join(", or ");
  if (values !== undefined) return values.map(String).join(", ");
  if (only !== undefined) return JSON.stringify(only);
  if (type === "array") {
    if (prefixItems !== undefined) return `[${prefixItems.map(wordsOf).join("; ")}]`;
    return `a list of: ${wordsOf(items ?? {})}`;
  }
  return [kindOf(type), rangeOf(schema)].filter((part) => part !== "").join(" ");
}

function kindOf(type: unknown): string {
  switch (type) {
    case "integer":
      return "a whole number";
    case "number":
      return "a number";
    case "string":
      return "a text";
    case "boolean":
      return "true or false";
    case "object":
      return "keys";
    case "null":
      return "null";
    default:
      return "anything";
  }
}

function rangeOf(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const limits: readonly (readonly [string, number | undefined])[] = [
    ["of at least", minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum],
    ["above", exclusiveMinimum],
    ["of at most", maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum],
    ["below", exclusiveMaximum],
  ];
  return limits
    .filter(([, limit]) => limit !== undefined)
    .map(([words, limit]) => `${words} ${limit}`)
    .join(" and ");
}
