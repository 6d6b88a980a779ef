/** Options of a reward loop, checked once and made a plan: errors name the option by its whole path. */

import { resolve } from "node:path";
import { RewardLoopOptionError } from "../errors.ts";
import { between, checkKeys, notAnOption } from "../option-checks.ts";
import { readSpend } from "../policy-settings.ts";
import { defaultWorkers, functionOptionNames, readSettings } from "../settings.ts";
import type { RewardFunctionOptions } from "../settings.ts";
import type {
  CascadeStage,
  RewardComponent,
  RewardLoopOptions,
  RewardPart,
  SpendOptions,
} from "./loop-options.ts";
import type { ComponentPlan, RewardPlan, StagePlan } from "./reward-plan.ts";

/** Throws RewardLoopOptionError, InvalidRewardSpecError. */
export function readPlan(options: RewardLoopOptions): RewardPlan {
  checkKeys<RewardLoopOptions>("", options, [
    ...functionOptionNames,
    "rewards",
    "combine",
    "cascade",
    "record",
    "replay",
    "spentBefore",
  ]);
  const { record: _record, replay: _replay, spentBefore: _spentBefore, ...functions } = options;
  const { rewards, combine, cascade, limits, ...rest } = functions;
  if (rewards === undefined && combine !== undefined) {
    notAnOption("combine", "left out without rewards", combine);
  }
  if (rewards === undefined && cascade === undefined) {
    const own = { ...rest, limits };
    return functionPlan(own, own, "");
  }
  const which = rewards === undefined ? "cascade" : "rewards";
  const mixed = ["reward", "cascade"].find(
    (key) => key !== which && options[key as "reward" | "cascade"] !== undefined,
  );
  if (mixed !== undefined) notAnOption(mixed, `left out with ${which}`, "given");
  if (limits !== undefined) {
    notAnOption("limits", `options of each of the ${which}: they belong to an endpoint`, "given");
  }
  const workers = rest.workers ?? shared(rewards ?? cascade ?? {});
  const inherited: Inherited = { ...rest, workers, spend: undefined };
  const tree: Tree =
    rewards === undefined
      ? { kind: "cascade", stages: stagesOf(cascade ?? {}, inherited, "") }
      : {
          kind: "rewards",
          combine: combineOf(combine),
          components: componentsOf(rewards, inherited),
        };
  const { sandboxFusion } = rest;
  if (sandboxFusion !== undefined && areAllOwn(rewards ?? cascade ?? {})) {
    const wanted = "left out where each has a `reward` of your own, which says where programs run";
    notAnOption("sandboxFusion", wanted, sandboxFusion.url);
  }
  return { ...tree, ...spendOf(rest.spend, inherited, "") };
}

/** Throws RewardLoopOptionError. */
export function readLogs({
  record,
  replay,
  spentBefore,
  baseDirectory = process.cwd(),
}: RewardLoopOptions): LogPlan {
  const given = typeof replay === "string" ? { log: replay } : replay;
  if (given !== undefined) checkKeys("replay", given, ["log", "missing"]);
  const { log, missing = "fail" } = given ?? {};
  if (missing !== "fail" && missing !== "ask") {
    notAnOption("replay.missing", '"fail" or "ask"', missing);
  }
  const pathOf = (option: string, path: string): string => {
    if (typeof path === "string" && path.trim() !== "") return resolve(baseDirectory, path);
    return notAnOption(option, "the path of a reward log", path);
  };
  const recorded = record === undefined ? undefined : pathOf("record", record);
  const before = spentBefore === undefined ? undefined : pathOf("spentBefore", spentBefore);
  const own = { record: recorded, spentBefore: before };
  if (given === undefined) return { ...own, replay: undefined };
  const replayed = pathOf("replay", log as string);
  if (replayed === recorded) notAnOption("record", "another file than that of replay", replayed);
  return { ...own, replay: { log: replayed, missing } };
}

export interface LogPlan {
  readonly record: string | undefined;
  readonly spentBefore: string | undefined;
  readonly replay: { readonly log: string; readonly missing: "fail" | "ask" } | undefined;
}

type Inherited = Omit<
  RewardLoopOptions,
  "rewards" | "combine" | "cascade" | "limits" | "record" | "replay" | "spentBefore"
>;
/** What a plan is made of, without what becomes of it at the cap. */
type Tree =
  | Omit<Extract<RewardPlan, { kind: "cascade" }>, "spend" | "cheaper">
  | Omit<Extract<RewardPlan, { kind: "rewards" }>, "spend" | "cheaper">;

/** So many threads as one function would have, for all of them together. */
function shared(parts: Readonly<Record<string, RewardComponent>>): number {
  if (typeof parts !== "object" || parts === null) return 1;
  const functions = Object.values(parts).reduce(
    (sum, part) => sum + Object.keys(part?.cascade ?? { itself: 1 }).length,
    0,
  );
  return Math.max(1, Math.floor(defaultWorkers() / Math.max(1, functions)));
}

/** Whether none of them has the scorers by data source, which ask the service. */
function areAllOwn(parts: Readonly<Record<string, RewardComponent>>): boolean {
  const functions = Object.values(parts).flatMap((part) =>
    part.cascade === undefined ? [part] : Object.values(part.cascade),
  );
  return functions.every(({ reward }) => reward !== undefined);
}

function componentsOf(
  rewards: Readonly<Record<string, RewardComponent>>,
  inherited: Inherited,
): ComponentPlan[] {
  return named("rewards", rewards).map(([name, component]) => {
    const option = `rewards.${name}`;
    const { weight, onInvalid, cascade, ...part } = objectAt(option, component);
    between(`${option}.weight`, weight, {});
    if (cascade !== undefined && part.reward !== undefined) {
      notAnOption(`${option}.reward`, "left out with cascade", "given");
    }
    const plan =
      cascade === undefined
        ? partPlan(option, part, inherited)
        : cascadePlan(option, cascade, part, inherited);
    return { name, weight: weight ?? 1, onInvalid: onInvalidOf(option, onInvalid), plan };
  });
}

/** What it says of itself holds for its stages, unless they say otherwise. */
function cascadePlan(
  option: string,
  cascade: Readonly<Record<string, CascadeStage>>,
  { spend, limits, ...part }: RewardPart,
  inherited: Inherited,
): RewardPlan {
  if (limits !== undefined) {
    notAnOption(`${option}.limits`, "options of a stage: they belong to an endpoint", "given");
  }
  checkKeys(option, part, partOptionNames as (keyof typeof part)[]);
  const own = { ...inherited, ...part };
  const stages = stagesOf(cascade, own, option);
  return { kind: "cascade", stages, ...spendOf(spend, own, option) };
}

function stagesOf(
  cascade: Readonly<Record<string, CascadeStage>>,
  inherited: Inherited,
  within: string,
): StagePlan[] {
  const option = within === "" ? "cascade" : `${within}.cascade`;
  return named(option, cascade).map(([name, stage], index, { length }) => {
    const { passOn = "cannotTell", ...part } = objectAt(`${option}.${name}`, stage);
    if (passOn !== "cannotTell" && passOn !== "invalid") {
      notAnOption(`${option}.${name}.passOn`, '"cannotTell" or "invalid"', passOn);
    }
    if (passOn === "invalid" && index === length - 1) {
      notAnOption(`${option}.${name}.passOn`, "left out of the last stage", passOn);
    }
    return { name, passOn, plan: partPlan(`${option}.${name}`, part, inherited) };
  });
}

function partPlan(option: string, part: RewardPart, inherited: Inherited): RewardPlan {
  checkKeys(option, part, partOptionNames as (keyof typeof part)[]);
  const { name, onFailure: _, rewardModel: __, sandboxFusion, ...own } = inherited;
  // For those without a function of their own.
  const service = part.reward === undefined ? { sandboxFusion } : {};
  return functionPlan(
    { ...own, ...service, ...part, ...(name === undefined ? {} : { name }) },
    inherited,
    option,
  );
}

function functionPlan(
  { spend, ...own }: RewardFunctionOptions & { readonly spend?: SpendOptions | undefined },
  inherited: Inherited,
  option: string,
): RewardPlan {
  const settings = { ...at(option, () => readSettings(own)), part: partName(option) };
  const plan: RewardPlan = { kind: "function", settings, ...spendOf(spend, inherited, option) };
  const { prices = {}, cap = 0 } = spend ?? {};
  if (cap > 0 && Object.values(prices).every((price) => price === undefined)) {
    const place = option === "" ? "spend" : `${option}.spend`;
    notAnOption(`${place}.cap`, "left out without prices, by which it would be reached", cap);
  }
  return plan;
}

function spendOf(
  spend: SpendOptions | undefined,
  inherited: Inherited,
  within: string,
): Pick<RewardPlan, "spend" | "cheaper"> {
  if (spend === undefined) return { spend: undefined, cheaper: undefined };
  const option = within === "" ? "spend" : `${within}.spend`;
  const { whenReached = "stop", ...own } = objectAt(option, spend);
  const settings = at(within, () => readSpend(own));
  if (whenReached === "stop") return { spend: settings, cheaper: undefined };
  if (own.cap === undefined) {
    notAnOption(`${option}.whenReached`, "left out without a cap", "given");
  }
  const part = objectAt(`${option}.whenReached`, whenReached, '"stop" or the options of a judge');
  const { limits: _, reward: __, ...rest } = inherited as RewardFunctionOptions;
  const cheaper = partPlan(`${option}.whenReached`, part, {
    ...rest,
    workers: 1,
    spend: undefined,
  });
  return { spend: settings, cheaper };
}

const ofTheLoop: ReadonlySet<string> = new Set(["name", "rewardModel", "onFailure"]);
const partOptionNames: readonly string[] = functionOptionNames.filter(
  (name) => !ofTheLoop.has(name),
);

/** Names become parts of columns, of actors' names and of records. */
function named<Part>(option: string, parts: Readonly<Record<string, Part>>): [string, Part][] {
  const entries = Object.entries(objectAt(option, parts));
  if (entries.length === 0) notAnOption(option, "at least one, by name", "none");
  for (const [name] of entries) {
    if (!/^[A-Za-z_][\w-]*$/.test(name)) {
      notAnOption(`${option}.${name}`, "named by letters, digits, _ and -, no digit first", name);
    }
  }
  return entries;
}

function objectAt<Value>(
  option: string,
  value: Value,
  expected: string = "an object",
): Value & object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  return notAnOption(option, expected, value);
}

function combineOf(combine: "sum" | "mean" = "sum"): "sum" | "mean" {
  if (combine === "sum" || combine === "mean") return combine;
  return notAnOption("combine", '"sum" or "mean"', combine);
}

function onInvalidOf(
  option: string,
  onInvalid: RewardComponent["onInvalid"] = "mask",
): ComponentPlan["onInvalid"] {
  if (onInvalid === "mask" || onInvalid === "leaveOut") return onInvalid;
  const expected = '"mask", "leaveOut" or { score }';
  const { score, ...others } = objectAt(`${option}.onInvalid`, onInvalid, expected);
  if (Object.keys(others).length > 0)
    notAnOption(`${option}.onInvalid`, expected, "something else");
  between(`${option}.onInvalid.score`, score ?? Number.NaN, {});
  return { score };
}

/** `correct_judge` for `rewards.correct.cascade.judge`. */
function partName(option: string): string | undefined {
  if (option === "") return undefined;
  const parts = option.split(".").filter((part) => !["rewards", "cascade", "spend"].includes(part));
  return parts.map((part) => (part === "whenReached" ? "cheaper" : part)).join("_");
}

/** Errors of options say where these stand. */
function at<Value>(option: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (option === "" || !(error instanceof RewardLoopOptionError)) throw error;
    throw new RewardLoopOptionError(`${option}.${error.option}`, error.expected, error.value);
  }
}
