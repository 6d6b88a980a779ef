/**
 * Settings, commands and addresses as they are shown: what is secret in them is hidden. A name says
 * that its value is secret; addresses lose their user and password wherever they stand.
 */

type Settings = Readonly<Record<string, unknown>>;

/** In place of a secret. */
export const hidden = "***";

const secretName =
  /(?:^|_)(?:(?:api|access|secret|private|auth)?key|(?:api|access|secret|private|auth)_?keys|token|(?:api|access|auth|bearer|refresh)_?tokens|secrets?|passw(?:or)?ds?|passphrase|pwd|credentials?|auth|authorization|bearer|cookies?)$/i;

/** verl's names, and ours, of columns and fields: their values are names. */
const columnName =
  /(?:^|_)(?:audio|data_source|enable_thinking|image|messages|prompt|response|reward_fn|tools|truth|video)_key$/i;

/**
 * A value behind its name in a map as Hydra, JSON or JavaScript writes it: `{api_key: x}`. It is
 * empty where a map begins: the names in that come next.
 */
const inMap =
  /([{,]\s*(["']?)([\w.-]+)\2\s*:\s*)("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^{}\]]*\]|(?:\\.|[^,{}[\]\\])*)/g;

/** Whether the name of a value says that it is secret. */
export function isSecret(name: string): boolean {
  const snake = name
    .replace(/([a-z\d])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .replace(/[-.]/g, "_");
  return secretName.test(snake) && !columnName.test(snake);
}

/** Hides what is secret in an address or a command: its user and password, and `token=…`. */
export function withoutUser(text: string): string {
  return text
    .replace(/(\w:\/\/)[^/?#\s]+@/g, `$1${hidden}@`)
    .replace(/(?<=(?:^|[?&;,=\s'"])-*([\w.-]+)=)[^&;,=\s'"]+/g, (value, name: string) =>
      isSecret(name) ? hidden : value,
    );
}

/** Returns the settings with `***` in place of texts and numbers under names that are secret. */
export function withoutSecrets(config: Settings): Settings {
  return shownMembers(config, { isWhole: false, found: () => undefined });
}

/** Returns the texts and numbers that `withoutSecrets` hides by their names. */
export function secretsIn(config: Settings): readonly string[] {
  const all: string[] = [];
  shownMembers(config, { isWhole: false, found: (secret) => all.push(secret) });
  return all;
}

/**
 * Hides what is secret in a map that is written as a text, by the names there: in
 * `{judge: {api_key: x}}`.
 */
export function withoutSecretsOfMap(text: string): string {
  return text.replace(inMap, (whole: string, ...groups: readonly string[]) => {
    const [begin = "", , name = "", value = ""] = groups;
    return value !== "" && isSecret(name) ? `${begin}${hidden}` : whole;
  });
}

interface Hiding {
  /** Whether a name above says that all of it is secret. */
  readonly isWhole: boolean;
  readonly found: (secret: string) => void;
}

function shownMembers(config: Settings, hiding: Hiding): Settings {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      shownValue(value, { ...hiding, isWhole: hiding.isWhole || isSecret(name) }),
    ]),
  );
}

function shownValue(value: unknown, hiding: Hiding): unknown {
  if (Array.isArray(value)) return value.map((one) => shownValue(one, hiding));
  if (isPlain(value)) return shownMembers(value, hiding);
  const isText = typeof value === "string";
  if (hiding.isWhole && (isText || typeof value === "number" || typeof value === "bigint")) {
    hiding.found(String(value));
    return hidden;
  }
  return isText ? withoutUser(value) : value;
}

function isPlain(value: unknown): value is Settings {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
