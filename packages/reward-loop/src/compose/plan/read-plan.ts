/**
 * Checks the options of a reward loop once and makes a plan. Errors name the option by its whole
 * path.
 */

import { resolve } from "node:path";
import { UnknownRewardManagerError } from "@rayling/reward-manager-registry";
import { RewardLoopOptionError } from "../../errors.ts";
import {
  defaultWorkers,
  functionOptions,
  loopOptions,
  partOptions,
} from "../../options/defaults/functions.ts";
import {
  componentOptions,
  replayOptions,
  spendOptions,
  stageOptions,
} from "../../options/defaults/functions.ts";
import { isManagerPath, managerKeys } from "../../options/defaults/managers.ts";
import {
  checkNeeds,
  checkOptions,
  notAnOption,
  over,
  placeOf,
  readOptions,
  withDefaults,
} from "../../options/read.ts";
import type { ResumedLog } from "../../record/outcome-recorder.ts";
import { settingsOf } from "../../settings/settings.ts";
import type {
  CascadeStage,
  RewardComponent,
  RewardLoopOptions,
  RewardPart,
  SpendOptions,
} from "./loop-options.ts";
import type { ComponentPlan, RewardPlan, StagePlan } from "./reward-plan.ts";

/** Throws RewardLoopOptionError, InvalidRewardSpecError, UnknownRewardManagerError. */
export function readPlan(options: RewardLoopOptions): RewardPlan {
  checkOptions(loopOptions, options);
  const { rewards, cascade, limits, ...loop } = options;
  checkNeeds({ combine: loopOptions.combine }, options);
  const inherited = only(functionOptions, loop);
  if (rewards === undefined && cascade === undefined) {
    const own = { ...inherited, limits };
    return functionPlan(own, own, "");
  }
  const which = rewards === undefined ? "cascade" : "rewards";
  const mixed = (["reward", "cascade"] as const).find(
    (key) => key !== which && options[key] !== undefined,
  );
  if (mixed !== undefined) notAnOption(mixed, `left out with ${which}`, "given");
  if (limits !== undefined) {
    notAnOption("limits", `options of each of the ${which}: they belong to an endpoint`, "given");
  }
  const parts: Readonly<Record<string, RewardComponent>> = rewards ?? cascade ?? {};
  const { spend } = inherited;
  const outer = { ...inherited, workers: loop.workers ?? shared(parts), spend: undefined };
  const tree: Tree =
    rewards === undefined
      ? { kind: "cascade", stages: stagesOf(cascade ?? {}, outer, "") }
      : {
          kind: "rewards",
          combine: withDefaults(loopOptions, options).combine,
          components: componentsOf(rewards, outer),
        };
  const { sandboxFusion, computeScoreKwargs } = inherited;
  const areOwn = areAllOwn(parts);
  if (sandboxFusion !== undefined && areOwn) {
    const wanted = "left out where each has a `reward` of your own, which says where programs run";
    notAnOption("sandboxFusion", wanted, sandboxFusion.url);
  }
  if (computeScoreKwargs !== undefined && areOwn) {
    const wanted = "left out where each has a `reward` of your own, which has rewardKwargs";
    notAnOption("computeScoreKwargs", wanted, computeScoreKwargs);
  }
  checkCap(spend, "", arePaid(parts, spend));
  return { ...tree, ...spendOf(spend, outer, "") };
}

/** Throws RewardLoopOptionError. */
export function readLogs(options: RewardLoopOptions): LogPlan {
  const settings = withDefaults(loopOptions, options);
  const { record, recordTexts, resume, spentBefore, baseDirectory } = settings;
  const { replay } = options;
  const pathOf = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(baseDirectory, path);
  const recorded = pathOf(record);
  if (resume !== undefined && recorded === undefined) {
    notAnOption("resume", "left out without record, the log that it goes on with", "given");
  }
  if (resume !== undefined && replay !== undefined) {
    notAnOption("resume", "left out with replay", "given");
  }
  const spent = pathOf(spentBefore) ?? (resume === undefined ? undefined : recorded);
  const own = { record: recorded, recordTexts, resume, spentBefore: spent };
  if (replay === undefined) return { ...own, replay: undefined };
  const given = typeof replay === "string" ? { log: replay } : replay;
  const { log: path = "", missing } = readOptions(replayOptions, given, "replay");
  const log = resolve(baseDirectory, path);
  if (log === recorded) notAnOption("record", "another file than that of replay", log);
  return { ...own, replay: { log, missing } };
}

export interface LogPlan {
  readonly record: string | undefined;
  readonly recordTexts: boolean;
  readonly resume: Pick<ResumedLog, "stale"> | undefined;
  readonly spentBefore: string | undefined;
  readonly replay: { readonly log: string; readonly missing: "fail" | "ask" } | undefined;
}

/** The loop's options that its parts inherit. */
type Inherited = Omit<RewardLoopOptions, "rewards" | "combine" | "cascade">;
/** A plan without its substitute judge at the cap. */
type Tree =
  | Omit<Extract<RewardPlan, { kind: "cascade" }>, "spend" | "cheaper">
  | Omit<Extract<RewardPlan, { kind: "rewards" }>, "spend" | "cheaper">;

/** Divides the default number of workers among the functions of all parts. */
function shared(parts: Readonly<Record<string, RewardComponent>>): number {
  const functions = Object.values(parts).reduce(
    (sum, part) => sum + Object.keys(part.cascade ?? { itself: 1 }).length,
    0,
  );
  return Math.max(1, Math.floor(defaultWorkers() / functions));
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
  return Object.entries(rewards).map(([name, component]) => {
    const option = `rewards.${name}`;
    checkName(option, name, extrasOfAll);
    const { cascade, ...part } = component;
    if (cascade !== undefined && part.reward !== undefined) {
      notAnOption(`${option}.reward`, "left out with cascade", "given");
    }
    const plan =
      cascade === undefined
        ? partPlan(option, part, inherited)
        : cascadePlan(option, cascade, part, inherited);
    const { weight, onInvalid } = withDefaults(componentOptions, component);
    return { name, weight, onInvalid, plan };
  });
}

/** Keys that the extra info of several rewards has besides their names. */
const extrasOfAll = ["score", "usage", "score_by_token", "score_by_turn", "answeredBy"];

/** Throws RewardLoopOptionError for a name under which something else stands, or nothing can. */
function checkName(option: string, name: string, taken: readonly string[]): void {
  if (name === "__proto__") notAnOption(option, "named otherwise: objects keep no such key", name);
  if (taken.includes(name)) {
    notAnOption(option, `named otherwise: the extra info has ${name} of all rewards`, name);
  }
}

/** The cascade's own options hold for its stages, unless these override them. */
function cascadePlan(
  option: string,
  cascade: Readonly<Record<string, CascadeStage>>,
  { spend, limits, ...part }: RewardPart,
  inherited: Inherited,
): RewardPlan {
  if (limits !== undefined) {
    notAnOption(`${option}.limits`, "options of a stage: they belong to an endpoint", "given");
  }
  const own = over(inherited, only(partOptions, part));
  const stages = stagesOf(cascade, own, option);
  checkCap(spend, option, arePaid(cascade, spend));
  return { kind: "cascade", stages, ...spendOf(spend, own, option) };
}

function stagesOf(
  cascade: Readonly<Record<string, CascadeStage>>,
  inherited: Inherited,
  within: string,
): StagePlan[] {
  return Object.entries(cascade).map(([name, stage], index, { length }) => {
    const option = `${placeOf(within, "cascade")}.${name}`;
    checkName(option, name, []);
    const { passOn } = withDefaults(stageOptions, stage);
    if (passOn === "invalid" && index === length - 1) {
      notAnOption(`${option}.passOn`, "left out of the last stage", passOn);
    }
    return { name, passOn, plan: partPlan(option, stage, inherited) };
  });
}

function partPlan(option: string, part: RewardPart, inherited: Inherited): RewardPlan {
  const { onFailure: _, rewardModel: __, sandboxFusion, computeScoreKwargs, ...own } = inherited;
  // Options of scorers by data source, for a part without a function.
  const ofScorers = part.reward === undefined ? { sandboxFusion, computeScoreKwargs } : {};
  return functionPlan(over({ ...own, ...ofScorers }, only(partOptions, part)), inherited, option);
}

function functionPlan(
  { spend, ...own }: Inherited,
  inherited: Inherited,
  option: string,
): RewardPlan {
  const settings = { ...at(option, () => settingsOf(own)), part: partName(option) };
  checkManager(own.manager);
  checkCap(spend, option, hasPrice(spend));
  return { kind: "function", settings, ...spendOf(spend, inherited, option) };
}

/**
 * Throws UnknownRewardManagerError with the names that a loop knows: some stand for options of the
 * loop, and for no class that the executor's registry could name.
 */
function checkManager(manager: Inherited["manager"]): void {
  if (typeof manager !== "string" || isManagerPath(manager)) return;
  if (Object.hasOwn(managerKeys, manager)) return;
  throw new UnknownRewardManagerError(manager, Object.keys(managerKeys));
}

/** Throws RewardLoopOptionError for a cap that is never reached, as nothing costs anything. */
function checkCap(spend: SpendOptions | undefined, within: string, isPaid: boolean): void {
  const cap = spend?.cap;
  if (cap === undefined || cap === 0 || isPaid) return;
  const wanted = "left out without prices, by which it would be reached";
  notAnOption(placeOf(within, "spend.cap"), wanted, cap);
}

/** Whether any of several costs something: by prices of its own, else by those of `spend`. */
function arePaid(
  parts: Readonly<Record<string, RewardComponent>>,
  spend: SpendOptions | undefined,
): boolean {
  return Object.values(parts).some(({ spend: own = spend, cascade }) => {
    const next = own === spend ? undefined : own?.whenReached;
    // It takes over from this one, and costs nothing without prices of its own.
    const isPaidLater = next !== undefined && next !== "stop" && hasPrice(next.spend);
    return isPaidLater || (cascade === undefined ? hasPrice(own) : arePaid(cascade, own));
  });
}

function hasPrice({ prices = {} }: Pick<SpendOptions, "prices"> = {}): boolean {
  return Object.values(prices).some((price) => price !== undefined);
}

function spendOf(
  spend: SpendOptions | undefined,
  inherited: Inherited,
  within: string,
): Pick<RewardPlan, "spend" | "cheaper"> {
  if (spend === undefined) return { spend: undefined, cheaper: undefined };
  const option = placeOf(within, "spend");
  checkNeeds(spendOptions, spend, option);
  const { whenReached: _spent, ...settings } = withDefaults(spendOptions, spend);
  const { whenReached } = spend;
  if (whenReached === undefined || whenReached === "stop") {
    return { spend: settings, cheaper: undefined };
  }
  const { limits: _, reward: __, ...rest } = inherited;
  const outer = { ...rest, workers: 1, spend: undefined };
  const cheaper = partPlan(`${option}.whenReached`, whenReached, outer);
  return { spend: settings, cheaper };
}

/** Returns the options that the table has. */
function only<Options extends object>(table: object, options: Options): Options {
  const own = Object.entries(options).filter(([name]) => Object.hasOwn(table, name));
  return Object.fromEntries(own) as Options;
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
