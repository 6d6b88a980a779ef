/** Checks of `runtimeEnv`: everything that can be known to be wrong is refused where the options are given, before a host is started with it. */
import type { Check } from "./options.ts";
import { show } from "./show.ts";

type Part = (value: unknown) => string | undefined;

const parts: Readonly<Record<string, Part>> = {
  env: (value) =>
    isRecord(value) && Object.values(value).every((one) => typeof one === "string")
      ? undefined
      : "must map names to texts",
  resourceLimits: (value) => {
    if (!isRecord(value)) return "must map limits to positive numbers";
    const unknown = Object.keys(value).find((name) => !limits.has(name));
    if (unknown !== undefined)
      return `has no limit "${unknown}" (it has ${[...limits].join(", ")})`;
    const isPositive = (one: unknown): boolean => typeof one === "number" && one > 0;
    return Object.values(value).every(isPositive)
      ? undefined
      : "must map limits to positive numbers";
  },
  execArgv: (value) => {
    if (!Array.isArray(value)) return "must be a list of flags";
    for (const one of value as readonly unknown[]) {
      const problem = problemOfFlag(one);
      if (problem !== undefined) return problem;
    }
    return undefined;
  },
  permissions: (value) => {
    if (!isRecord(value)) return "must be an object";
    for (const [name, one] of Object.entries(value)) {
      const check = permissions[name];
      if (check === undefined) {
        return `has no "${name}" (it has ${Object.keys(permissions).join(", ")})`;
      }
      const problem = one === undefined ? undefined : check(one);
      if (problem !== undefined) return `${name} ${problem}`;
    }
    return undefined;
  },
  workingDir: (value) =>
    value === true || (typeof value === "string" && value.trim() !== "")
      ? undefined
      : "must be true or a folder",
  excludes: (value) => texts(value),
};

const texts: Part = (value) =>
  Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "")
    ? undefined
    : "must be a list of texts";

const limits: ReadonlySet<string> = new Set([
  "maxYoungGenerationSizeMb",
  "maxOldGenerationSizeMb",
  "codeRangeSizeMb",
  "stackSizeMb",
]);

const places: Part = (value) =>
  Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "")
    ? undefined
    : "must be a list of paths";

const flag: Part = (value) => (typeof value === "boolean" ? undefined : "must be true or false");

const permissions: Readonly<Record<string, Part>> = {
  allowFsRead: places,
  allowFsWrite: places,
  allowChildProcess: flag,
  allowWorker: flag,
  allowAddons: flag,
  allowNet: (value) => {
    if (process.allowedNodeEnvironmentFlags.has("--allow-net")) return flag(value);
    return `cannot be given: Node ${process.version} does not limit the network`;
  },
};

export const environment: Check = (value) => {
  if (!isRecord(value)) return "must be an object";
  for (const [name, part] of Object.entries(value)) {
    const check = parts[name];
    if (check === undefined) {
      return `has no part "${name}" (it has ${Object.keys(parts).join(", ")})`;
    }
    const problem = part === undefined ? undefined : check(part);
    if (problem !== undefined) return `${name} ${problem}`;
  }
  return undefined;
};

/** Node knows more flags; these are those that it lets the environment set, which are none that say what to run. */
function problemOfFlag(one: unknown): string | undefined {
  if (typeof one !== "string" || !one.startsWith("-")) {
    return `must be a list of flags, each one text with its value (--flag=value), not ${show(one)}`;
  }
  if (/^--(permission|experimental-permission|allow-)/.test(one)) {
    return `must not contain ${one}: give permissions`;
  }
  return process.allowedNodeEnvironmentFlags.has(one) || /^--expose[-_]gc$/.test(one)
    ? undefined
    : `must not contain ${one}: Node has no such flag, or it is not for a single worker`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
