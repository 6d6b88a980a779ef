/**
 * The node that an actor or a task asks for: amounts, a strategy, labels. Plain data, made by
 * api/scheduling/ and read by placement/; the parts between pass it on and compare keys at most.
 */

/**
 * Amounts by name in the user's units: "CPU", "GPU", "memory" in bytes, or a name of the user's
 * own.
 */
export type Amounts = Readonly<Record<string, number>>;

/**
 * A condition on one label of a node. A node without the label meets `notIn` and `doesNotExist`.
 */
export type LabelCondition =
  | { readonly in: readonly string[] }
  | { readonly notIn: readonly string[] }
  | { readonly exists: true }
  | { readonly doesNotExist: true };

/** All must hold. */
export type LabelConditions = Readonly<Record<string, LabelCondition>>;

export type Strategy =
  | { readonly kind: "DEFAULT" }
  | { readonly kind: "SPREAD" }
  | { readonly kind: "NODE_AFFINITY"; readonly nodeId: string; readonly soft: boolean }
  | { readonly kind: "NODE_LABEL"; readonly hard: LabelConditions; readonly soft: LabelConditions }
  | {
      readonly kind: "PLACEMENT_GROUP";
      readonly group: GroupReference;
      /** -1: any bundle with room. */
      readonly bundleIndex: number;
      /** Actors and tasks that are made by code in the group are placed in it, too. */
      readonly captureChildTasks: boolean;
    };

/** A placement group as its holders know it. */
export interface GroupReference {
  readonly groupId: string;
  readonly bundles: readonly Amounts[];
}

/** Resources and placement group that running code was given. */
export interface Assignment {
  readonly resources: Amounts;
  readonly group: GroupScope | undefined;
}

/** The placement group that code runs in. */
export interface GroupScope {
  readonly group: GroupReference;
  readonly captureChildTasks: boolean;
}

export function assignmentOf(demand: Demand): Assignment {
  return { resources: demand.hold, group: scopeOf(demand) };
}

export function scopeOf({ strategy }: Demand): GroupScope | undefined {
  if (strategy.kind !== "PLACEMENT_GROUP") return undefined;
  return { group: strategy.group, captureChildTasks: strategy.captureChildTasks };
}

export interface Demand {
  /** Equal for equal demands: those who want the same wait in one line. */
  readonly key: string;
  /** Must be free where it starts. */
  readonly place: Amounts;
  /** Is taken while it runs. Ray's default actor needs a CPU to be placed and then holds none. */
  readonly hold: Amounts;
  readonly strategy: Strategy;
  /** Conditions on labels, the preferred ones first; none: any node will do. */
  readonly selectors: readonly LabelConditions[];
}

export function makeDemand(
  place: Amounts,
  hold: Amounts,
  strategy: Strategy = { kind: "DEFAULT" },
  selectors: readonly LabelConditions[] = [],
): Demand {
  const key = JSON.stringify([sorted(place), sorted(hold), strategy, selectors]);
  return { key, place, hold, strategy, selectors };
}

/** Leaves out the resources of which nothing is wanted. */
export function withoutNothing(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).filter(([, wanted]) => wanted > 0));
}

function sorted(amounts: Amounts): readonly (readonly [string, number])[] {
  return Object.entries(amounts).toSorted(([left], [right]) => (left < right ? -1 : 1));
}
