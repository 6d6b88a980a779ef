/**
 * Checks the options of a function of this package where they are given. A misspelt name is an
 * error, because an option that is silently left out may cost data: a log that is to be kept
 * starts empty. Must not know what an option means.
 */
import { DataProtoError, describe } from "../errors.ts";

/**
 * The kind of an option's value. "other": any value, or one that is checked where it is used.
 */
type OptionKind = "boolean" | "function" | "number" | "list" | "record" | "other";

/** Kinds of all options of a function, by name. */
export type OptionKinds<Options> = { readonly [Name in keyof Required<Options>]: OptionKind };

/**
 * Throws BAD_ARGUMENT, which names the function and the option, for an option that the function
 * does not have and for a value of another kind.
 */
export function checkOptions<Options extends object>(
  where: string,
  options: Options,
  kinds: OptionKinds<Options>,
): void {
  if (!isOf("record", options)) {
    const message = `${where}: options must be an object, got ${describe(options)}`;
    throw new DataProtoError("BAD_ARGUMENT", message, { key: "options", actual: options });
  }
  const known: Readonly<Record<string, OptionKind>> = kinds;
  for (const [key, actual] of Object.entries(options)) {
    const kind = Object.hasOwn(known, key) ? known[key] : undefined;
    if (kind === undefined) {
      const expected = Object.keys(known);
      const message = `${where} has no option "${key}"; it has ${expected.join(", ")}`;
      throw new DataProtoError("BAD_ARGUMENT", message, { key, expected, actual });
    }
    if (actual === undefined || isOf(kind, actual)) continue;
    const message = `${where}: ${key} must be a ${kind}, got ${describe(actual)}`;
    throw new DataProtoError("BAD_ARGUMENT", message, { key, expected: kind, actual });
  }
}

function isOf(kind: OptionKind, value: unknown): boolean {
  if (kind === "other") return true;
  if (kind === "list") return Array.isArray(value);
  if (kind !== "record") return typeof value === kind;
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
