/** Settings and addresses as they are shown: what is secret in them is hidden. */

type Settings = Readonly<Record<string, unknown>>;

/** In place of a secret. */
export const hidden = "***";

const secretName =
  /(?:^|_)(?:(?:api|access|secret|private)_?key|token|secret|passw(?:or)?d|credentials?|authorization|cookie)$/i;

/** Whether the name of a value says that it is secret. */
export function isSecret(name: string): boolean {
  return secretName.test(name.replace(/([a-z])([A-Z])/g, "$1_$2").replace(/[-.]/g, "_"));
}

/** Hides the name and the password, or the token, of an address. */
export function withoutUser(text: string): string {
  return text.replace(/(\w:\/\/)[^/@\s]+@/g, `$1${hidden}@`);
}

export function withoutSecrets(config: Settings): Settings {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, shownValue(name, value)]),
  );
}

function shownValue(name: string, value: unknown): unknown {
  if (typeof value === "string") return isSecret(name) ? hidden : withoutUser(value);
  if (Array.isArray(value)) return value.map((one) => shownValue(name, one));
  if (typeof value === "object" && value !== null) return withoutSecrets({ ...value });
  return value;
}
