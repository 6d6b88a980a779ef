/** Values in a few words, for messages that name the culprit. */
import { inspect, types } from "node:util";

const longest = 120;

/** Objects without a class, and lists, with what is in them, but not deeper: there may be secrets. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value !== "object" || value === null) return String(value);
  return isPlain(value) ? shortened(value) : showKind(value);
}

/** What it is, and nothing of what is in it. */
export function showKind(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters`;
  if (typeof value !== "object" || value === null) return show(value);
  if (types.isProxy(value)) return "a proxy";
  const { constructor } = value as { readonly constructor?: unknown };
  return `an instance of ${typeof constructor === "function" ? constructor.name : "no class"}`;
}

function isPlain(value: object): boolean {
  if (types.isProxy(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

function shortened(value: object): string {
  const text = inspect(value, {
    depth: 0,
    breakLength: Number.POSITIVE_INFINITY,
    maxArrayLength: 10,
    maxStringLength: 60,
    getters: false,
  });
  return text.length > longest ? `${text.slice(0, longest)} ...` : text;
}
