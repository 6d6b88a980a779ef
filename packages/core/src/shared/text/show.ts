/**
 * Shows values in a few words, for messages that name the culprit.
 */
import { inspect, types } from "node:util";

const longest = 120;

/**
 * Shows plain objects and lists with their members, but not deeper: nested values may be secrets.
 */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return isPlain(value) ? shortened(value) : showKind(value);
  } catch {
    // A value may show itself by code of the user's, which throws.
    return "an object that cannot be shown";
  }
}

/** Names the kind of a value and shows nothing of its content. */
export function showKind(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters`;
  if (typeof value !== "object" || value === null) return show(value);
  if (types.isProxy(value)) return "a proxy";
  const { constructor }: { readonly constructor?: unknown } = value;
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
