/**
 * The options that place actors and tasks, and the demand that results, once per set of options.
 */
import {
  type Amounts,
  type Demand,
  type LabelConditions,
  makeDemand,
  type Strategy,
} from "../../rpc/resource-demand.ts";
import { currentTask } from "../../caller/waits/task-scope.ts";
import { covers, toUnits } from "../../placement/resources.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { type Check, type Checks, count, flag, text, isRecord } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import { amount, bytes, gpus, resources } from "./amounts.ts";
import { PlacementGroup } from "./placement-group.ts";
import { labelSelector, type LabelSelector, toConditions } from "./labels.ts";

/**
 * The placement of an actor or task.
 *
 * - `"DEFAULT"`: packs a node until half of it is used, then takes the least used one.
 * - `"SPREAD"`: one node after the other.
 * - NODE_AFFINITY: that node. A busy node means a wait. A node that is gone or too small means
 *   ActorUnschedulableError or TaskUnschedulableError, or, with `soft`, any other node.
 * - PLACEMENT_GROUP: in a bundle of that group, or in any of its bundles (`bundleIndex` -1). With
 *   `captureChildTasks`, its own actors and tasks without a strategy run there, too.
 * - NODE_LABEL: nodes whose labels meet `hard`, among them preferably those that meet `soft`.
 */
export type SchedulingStrategy =
  | "DEFAULT"
  | "SPREAD"
  | { readonly kind: "NODE_AFFINITY"; readonly nodeId: string; readonly soft?: boolean }
  | {
      readonly kind: "NODE_LABEL";
      readonly hard?: LabelConditions | undefined;
      readonly soft?: LabelConditions | undefined;
    }
  | {
      readonly kind: "PLACEMENT_GROUP";
      readonly placementGroup: PlacementGroup;
      readonly bundleIndex?: number | undefined;
      readonly captureChildTasks?: boolean | undefined;
    };

/** Alternatives to `labelSelector` when no node meets it, in order of preference. */
export interface FallbackStrategy {
  /** Conditions on the labels of the node. */
  readonly labelSelector: LabelSelector;
}

/** The resources and the placement of an actor or task. */
export interface SchedulingOptions {
  /**
   * CPUs that it holds while it lives. Default for a task: 1. Default for an actor: it holds none
   * but needs one free CPU to be placed; 1 if it requests anything but memory.
   */
  readonly numCpus?: number | undefined;
  /** GPUs that it holds; the scheduler only counts them. Default 0. */
  readonly numGpus?: number | undefined;
  /**
   * Bytes of memory that it holds, as the scheduler counts them; use is not measured. Default 0.
   */
  readonly memory?: number | undefined;
  /**
   * Amounts of custom resources that nodes offer through `resources`. Fractions go down to 0.0001.
   * Default: none.
   */
  readonly resources?: Readonly<Record<string, number>> | undefined;
  /** The placement. Default "DEFAULT". */
  readonly schedulingStrategy?: SchedulingStrategy | undefined;
  /**
   * Restricts the nodes to those with these labels: `{ zone: "a", disk: "!hdd", tier: "in(1,2)" }`.
   * Default: any node.
   */
  readonly labelSelector?: LabelSelector | undefined;
  /** Alternatives to `labelSelector`, in order of preference. Default: none. */
  readonly fallbackStrategy?: readonly FallbackStrategy[] | undefined;
}

/** @throws InvalidOptionError */
export function actorDemand(where: string, options: SchedulingOptions): Demand {
  const asks = [options.numCpus, options.numGpus, options.resources].some(
    (one) => one !== undefined,
  );
  const hold = amountsOf(options, asks ? 1 : 0);
  return demandOf(where, options, asks ? hold : { ...hold, CPU: 1 }, hold);
}

/** @throws InvalidOptionError */
export function taskDemand(where: string, options: SchedulingOptions): Demand {
  const hold = amountsOf(options, 1);
  return demandOf(where, options, hold, hold);
}

/**
 * Moves the demand into the current placement group if code that runs there with
 * `captureChildTasks` gives no strategy.
 *
 * @throws InvalidOptionError when it fits into no bundle, or selects nodes by their labels
 */
export function inCurrentGroup(where: string, options: SchedulingOptions, demand: Demand): Demand {
  const scope = currentTask()?.assignment.group;
  if (scope?.captureChildTasks !== true || options.schedulingStrategy !== undefined) return demand;
  if (options.labelSelector !== undefined) {
    throw new InvalidOptionError(
      "labelSelector",
      `${where}: labelSelector cannot be combined with the placement group that captures child tasks; schedulingStrategy: "DEFAULT" leaves the group`,
    );
  }
  const strategy: GroupPlace = { kind: "PLACEMENT_GROUP", bundleIndex: -1, ...scope };
  checkFit(where, demand.place, strategy);
  return makeDemand(demand.place, demand.hold, strategy);
}

type GroupPlace = Extract<Strategy, { kind: "PLACEMENT_GROUP" }>;

/**
 * Refuses a demand that fits into no bundle: it would wait for ever, because bundles do not grow.
 */
function checkFit(where: string, place: Amounts, { group, bundleIndex }: GroupPlace): void {
  const { bundles } = group;
  const wrong = (problem: string): never => {
    throw new InvalidOptionError("schedulingStrategy", `${where}: ${problem}`);
  };
  if (bundleIndex >= bundles.length) {
    wrong(`bundleIndex is ${bundleIndex}, the placement group has ${bundles.length} bundles`);
  }
  const usable = bundleIndex < 0 ? bundles : bundles.slice(bundleIndex, bundleIndex + 1);
  if (usable.some((bundle) => covers(toUnits(bundle), toUnits(place)))) return;
  wrong(
    `${JSON.stringify(place)} fits into no bundle of the placement group, which has ${JSON.stringify(usable)} (an actor that asks for nothing needs a CPU to start; numCpus: 0 needs none)`,
  );
}

const schedulingStrategy: Check = (value) => {
  if (value === "DEFAULT" || value === "SPREAD") return undefined;
  if (!isRecord(value)) return problemOfStrategy;
  const strategy = value;
  switch (strategy["kind"]) {
    case "NODE_AFFINITY":
      return (
        unknownPart(strategy, ["kind", "nodeId", "soft"]) ??
        inPart("nodeId", text(strategy["nodeId"])) ??
        inPart("soft", flag(strategy["soft"] ?? false))
      );
    case "NODE_LABEL":
      return (
        unknownPart(strategy, ["kind", "hard", "soft"]) ??
        inPart("hard", labelConditions(strategy["hard"] ?? {})) ??
        inPart("soft", labelConditions(strategy["soft"] ?? {}))
      );
    case "PLACEMENT_GROUP":
      return (
        unknownPart(strategy, ["kind", "placementGroup", "bundleIndex", "captureChildTasks"]) ??
        (strategy["placementGroup"] instanceof PlacementGroup
          ? undefined
          : "has a part placementGroup that must be a placement group") ??
        inPart("bundleIndex", count(-1)(strategy["bundleIndex"] ?? -1)) ??
        inPart("captureChildTasks", flag(strategy["captureChildTasks"] ?? false))
      );
    default:
      return problemOfStrategy;
  }
};

const problemOfStrategy =
  'must be "DEFAULT", "SPREAD", or an object of kind "NODE_AFFINITY", "NODE_LABEL" or "PLACEMENT_GROUP"';

const fallbackStrategy: Check = (value) => {
  if (!Array.isArray(value)) return "must be a list";
  for (const one of value) {
    if (!isRecord(one)) return "must be a list of { labelSelector }";
    const problem =
      unknownPart(one, ["labelSelector"]) ??
      inPart("labelSelector", labelSelector(one["labelSelector"]));
    if (problem !== undefined) return problem;
  }
  return undefined;
};

export const schedulingChecks: Checks<SchedulingOptions> = {
  numCpus: amount,
  numGpus: gpus,
  memory: bytes,
  resources,
  schedulingStrategy,
  labelSelector,
  fallbackStrategy,
};

function labelConditions(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return "must map labels to conditions";
  for (const [label, condition] of Object.entries(value)) {
    const entries = Object.entries(isRecord(condition) ? condition : {});
    const [[kind, operand] = ["", undefined]] = entries;
    const isList =
      Array.isArray(operand) &&
      operand.length > 0 &&
      operand.every((one) => typeof one === "string");
    const known =
      kind === "in" || kind === "notIn"
        ? isList
        : (kind === "exists" || kind === "doesNotExist") && operand === true;
    if (entries.length !== 1 || !known) {
      return `has a wrong condition for ${label} (it may be { in: [...] }, { notIn: [...] }, { exists: true } or { doesNotExist: true })`;
    }
  }
  return undefined;
}

function unknownPart(
  value: Readonly<Record<string, unknown>>,
  known: readonly string[],
): string | undefined {
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  return unknown === undefined
    ? undefined
    : `has no part "${unknown}" (it has ${known.join(", ")})`;
}

function inPart(name: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `has a part ${name} that ${problem}`;
}

function amountsOf(options: SchedulingOptions, defaultCpus: number): Amounts {
  const all = {
    ...options.resources,
    CPU: options.numCpus ?? defaultCpus,
    GPU: options.numGpus ?? 0,
    memory: options.memory ?? 0,
  };
  return Object.fromEntries(Object.entries(all).filter(([, wanted]) => wanted > 0));
}

function demandOf(
  where: string,
  options: SchedulingOptions,
  place: Amounts,
  hold: Amounts,
): Demand {
  const { schedulingStrategy: chosen = "DEFAULT", labelSelector: selector } = options;
  if (selector === undefined && options.fallbackStrategy !== undefined) {
    throw new InvalidOptionError(
      "fallbackStrategy",
      `${where}: fallbackStrategy needs a labelSelector to fall back from`,
    );
  }
  if (selector !== undefined && typeof chosen !== "string") {
    throw new InvalidOptionError(
      "labelSelector",
      `${where}: labelSelector goes with the strategies "DEFAULT" and "SPREAD", not with ${show(chosen.kind)}`,
    );
  }
  const strategy = strategyOf(chosen);
  if (strategy.kind === "PLACEMENT_GROUP") checkFit(where, place, strategy);
  const selectors = [selector, ...(options.fallbackStrategy ?? []).map((one) => one.labelSelector)];
  return makeDemand(
    place,
    hold,
    strategy,
    selectors.filter((one) => one !== undefined).map(toConditions),
  );
}

function strategyOf(chosen: SchedulingStrategy): Strategy {
  if (typeof chosen === "string") return { kind: chosen };
  if (chosen.kind === "NODE_LABEL") {
    return { kind: chosen.kind, hard: chosen.hard ?? {}, soft: chosen.soft ?? {} };
  }
  if (chosen.kind === "PLACEMENT_GROUP") {
    const { id, bundleSpecs } = chosen.placementGroup;
    return {
      kind: chosen.kind,
      group: { groupId: id, bundles: bundleSpecs },
      bundleIndex: chosen.bundleIndex ?? -1,
      captureChildTasks: chosen.captureChildTasks ?? false,
    };
  }
  return { kind: chosen.kind, nodeId: chosen.nodeId, soft: chosen.soft ?? false };
}
