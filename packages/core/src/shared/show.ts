/** A value in a few words, for a message that names the culprit. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return `function ${value.name}`;
  if (typeof value === "object" && value !== null)
    return `an instance of ${value.constructor?.name ?? "no class"}`;
  return String(value);
}
