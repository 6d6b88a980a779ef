/**
 * Checks of `runtimeEnv`: every mistake that is visible in the options is refused there, before a
 * host starts with them.
 */
import type { Check } from "./options.ts";
import { show } from "./text/show.ts";
import { isRecord } from "./options.ts";

type Part = (value: unknown) => string | undefined;

const parts: Readonly<Record<string, Part>> = {
  env: (value) => {
    const isTexts = isRecord(value) && Object.values(value).every((one) => typeof one === "string");
    if (!isTexts) return "must map names to texts";
    const wrong = Object.entries(value).find(
      ([name, text]) => name === "" || /[=\0]/.test(name) || String(text).includes("\0"),
    );
    // The text of the variable may be a secret.
    return wrong === undefined
      ? undefined
      : `has a name or text that no environment can hold (${JSON.stringify(wrong[0])})`;
  },
  resourceLimits: (value) => {
    if (!isRecord(value)) return "must map limits to positive numbers";
    const unknown = Object.keys(value).find((name) => !limits.has(name));
    if (unknown !== undefined)
      return `has no limit "${unknown}" (it has ${[...limits].join(", ")})`;
    const isPositive = (one: unknown): boolean =>
      typeof one === "number" && one > 0 && Number.isFinite(one);
    if (!Object.values(value).every(isPositive)) return "must map limits to positive numbers";
    for (const [name, least] of Object.entries(floors)) {
      if (Number(value[name] ?? least) < least) {
        return `.${name} must be at least ${least}: with less no worker starts, and a thread can take the whole process along`;
      }
    }
    return undefined;
  },
  execArgv: (value) => {
    if (!Array.isArray(value)) return "must be a list of flags";
    for (const one of value) {
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

/**
 * Measured (Node 24.21, Linux): a thread starts from 12 MB of old generation and 0.3 MB of stack.
 * Below 4 and 0.25 V8 ends the process with SIGABRT or SIGSEGV. Both floors leave some room for the
 * user's own module.
 */
const floors = { maxOldGenerationSizeMb: 16, stackSizeMb: 0.5 };

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

/** Allows the flags that Node lets the environment set. None of them says what to run. */
function problemOfFlag(one: unknown): string | undefined {
  if (typeof one !== "string" || !one.startsWith("-")) {
    return `must be a list of flags, each one text with its value (--flag=value), not ${show(one)}`;
  }
  if (/^--(permission|experimental-permission|allow-)/.test(one)) {
    return `must not contain ${one}: give permissions`;
  }
  if (/^--(inspect|debug)/.test(one)) {
    return `must not contain ${one}: all hosts would listen for a debugger, and who connects may run code. Give it to the driver`;
  }
  return process.allowedNodeEnvironmentFlags.has(one) || /^--expose[-_]gc$/.test(one)
    ? undefined
    : `must not contain ${one}: Node has no such flag, or it is not for a single worker`;
}
