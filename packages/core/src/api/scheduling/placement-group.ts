/**
 * Placement groups: bundles of resources that are reserved together, all or none, and the actors
 * and tasks that run in them.
 */
import type { Caller } from "../../caller/caller.ts";
import { currentCaller } from "../../caller/current.ts";
import { currentTask } from "../../caller/waits/task-scope.ts";
import { serializers } from "../../protocol/values/serializers.ts";
import type { GroupInfo, GroupRegistration, GroupStrategy } from "../../rpc/cluster-directory.ts";
import { type Amounts, type GroupReference, withoutNothing } from "../../rpc/resource-demand.ts";
import { InvalidOptionError, TaskPlacementGroupRemoved } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { type Check, checkOptions, count, text } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import type { ObjectRef } from "../../store/object-ref.ts";
import { bundle as checkBundle } from "./amounts.ts";
import { labelSelector, type LabelSelector, toConditions } from "./labels.ts";
import { get, wait } from "../objects.ts";
import { asked, isDriverCode, letGo, never, useCaller } from "../session.ts";

/** Options of `placementGroup`. */
export interface PlacementGroupOptions {
  /**
   * The placement of the bundles. Default `"PACK"`.
   *
   * - `"PACK"`: on as few nodes as possible.
   * - `"SPREAD"`: on as many nodes as possible.
   * - `"STRICT_PACK"`: on one node, or wait.
   * - `"STRICT_SPREAD"`: each on a node of its own, or wait.
   */
  readonly strategy?: GroupStrategy | undefined;
  /** The name by which `getPlacementGroup` finds it; unique among living groups. Default: none. */
  readonly name?: string | undefined;
  /**
   * `"detached"`: outlives the actor that made it. Groups of drivers and tasks end with the
   * runtime.
   */
  readonly lifetime?: "detached" | undefined;
  /** Label selectors for the nodes, one for each bundle. Default: none. */
  readonly bundleLabelSelector?: readonly LabelSelector[] | undefined;
}

/** Pending registrations of groups that were made in a host. */
const registrations: WeakMap<PlacementGroup, Promise<void>> = new WeakMap();

/** The runtime of each group. */
const homes: WeakMap<PlacementGroup, Caller> = new WeakMap();

/** A handle of a placement group; it may be passed to actors and tasks and returned from them. */
export class PlacementGroup {
  /** Unique in the cluster. */
  readonly id: string;
  /** The requested amounts of each bundle. */
  readonly bundleSpecs: readonly Amounts[];

  /** @internal `placementGroup` and `getPlacementGroup` make them. */
  constructor(reference: GroupReference) {
    this.id = reference.groupId;
    this.bundleSpecs = reference.bundles;
    const caller = currentCaller();
    if (caller !== undefined) homes.set(this, caller);
  }

  /** The number of bundles. */
  get bundleCount(): number {
    return this.bundleSpecs.length;
  }

  /** Removes it, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await letGo(() => removePlacementGroup(this));
  }

  /**
   * Returns a ref that is ready when all bundles are reserved; its value is the group. It fails
   * with TaskPlacementGroupRemoved.
   *
   * @throws SessionEndedError
   */
  ready(): ObjectRef<PlacementGroup> {
    homes.get(this)?.life.check(`placement group ${this.id}`);
    const caller = useCaller();
    const label = `placement group ${this.id} ready`;
    const made = (async () => {
      await registrations.get(this);
      const state = await caller.directory.groupReady(this.id);
      if (state !== "REMOVED") return this;
      throw new TaskPlacementGroupRemoved(label, `placement group ${this.id} was removed`);
    })();
    return caller.objects.refOf(label, made) as ObjectRef<PlacementGroup>;
  }

  /**
   * Returns whether all bundles are reserved within that time. Default 30,000 ms, as in Ray.
   * Rejects with TaskPlacementGroupRemoved, SessionEndedError.
   */
  async wait(timeoutMs: number = 30_000): Promise<boolean> {
    if (isDriverCode()) return never();
    checkOptions("wait", { timeoutMs }, { timeoutMs: count(0, "fraction") });
    const { ready } = await wait([this.ready()], { timeoutMs });
    await get(ready);
    return ready.length === 1;
  }
}

/**
 * Requests bundles of resources, reserved all or none. It returns at once; `ready()` reports the
 * reservation.
 *
 * Run an actor or a task in it with `schedulingStrategy: { kind: "PLACEMENT_GROUP", placementGroup
 * }`. A group that no node can hold waits. A group ends with `removePlacementGroup`, with the actor
 * that made it, or with the runtime.
 *
 * @throws InvalidOptionError for an empty bundle, an unknown strategy, or a name that is taken
 * (inside an actor or task, `ready()` rejects with the latter)
 */
export function placementGroup(
  bundles: readonly Amounts[],
  options: PlacementGroupOptions = {},
): PlacementGroup {
  const caller = useCaller();
  checkBundles(bundles);
  checkOptions("placementGroup", options, {
    strategy: groupStrategy,
    name: text,
    lifetime: (value) => (value === "detached" ? undefined : 'must be "detached", or absent'),
    bundleLabelSelector: selectorsFor(bundles),
  });
  const { strategy = "PACK", name, bundleLabelSelector = [] } = options;
  const spec = {
    groupId: newId("group"),
    name,
    strategy,
    bundles: bundles.map(withoutNothing),
    selectors: bundles.map((_, index) => toConditions(bundleLabelSelector[index] ?? {})),
    owner: options.lifetime === "detached" ? undefined : currentTask()?.actor?.info.actorId,
  };
  const group = new PlacementGroup(spec);
  const check = ({ created }: GroupRegistration): void => {
    if (created) return;
    throw new InvalidOptionError(
      "name",
      `a placement group named ${JSON.stringify(name)} exists already`,
    );
  };
  const registration = caller.directory.createGroup(spec);
  if (registration instanceof Promise) {
    const registered = registration.then(check);
    // `ready` and `wait` report the error.
    registered.catch(() => undefined);
    registrations.set(group, registered);
  } else {
    check(registration);
  }
  return group;
}

/**
 * Releases its resources and ends its users: actors with ActorPlacementGroupRemoved, tasks with
 * TaskPlacementGroupRemoved. Idempotent.
 */
export async function removePlacementGroup(group: PlacementGroup): Promise<void> {
  const { id } = groupOf("removePlacementGroup", group);
  await asked((directory) => directory.removeGroup(id));
}

/** Returns the living group of that name. Rejects with InvalidOptionError when there is none. */
export async function getPlacementGroup(name: string): Promise<PlacementGroup> {
  const groups = await asked((directory) => directory.groups());
  const found = groups.find((one) => one.name === name && one.state !== "REMOVED");
  if (text(name) !== undefined || found === undefined) {
    throw new InvalidOptionError("name", `there is no placement group named ${show(name)}`);
  }
  return new PlacementGroup({ groupId: found.placementGroupId, bundles: found.bundles });
}

/**
 * Returns the group in which the calling actor or task runs; undefined in a driver and outside of
 * groups.
 */
export function getCurrentPlacementGroup(): PlacementGroup | undefined {
  useCaller();
  const scope = currentTask()?.assignment.group;
  return scope === undefined ? undefined : new PlacementGroup(scope.group);
}

/** Returns all groups by id, including removed ones; or one of them. */
export function placementGroupTable(): Promise<Readonly<Record<string, GroupInfo>>>;
export function placementGroupTable(group: PlacementGroup): Promise<GroupInfo>;
export async function placementGroupTable(group?: PlacementGroup): Promise<unknown> {
  const groups = await asked((directory) => directory.groups());
  const table = Object.fromEntries(groups.map((one) => [one.placementGroupId, one]));
  if (group === undefined) return table;
  const { id } = groupOf("placementGroupTable", group);
  const found = table[id];
  if (found !== undefined) return found;
  throw new InvalidOptionError("group", `placement group ${id} is not known here`);
}

/** @throws InvalidOptionError for anything but a placement group */
export function groupOf(where: string, group: unknown): PlacementGroup {
  if (group instanceof PlacementGroup) return group;
  throw new InvalidOptionError("group", `${where} takes a placement group, not ${show(group)}`);
}

// The serializer belongs to the package and not to a module of the user's: a holder of a group has
// loaded this module.
serializers.byClass.set(PlacementGroup, {
  id: "PlacementGroup",
  write: (group) => {
    const { id, bundleSpecs } = group as PlacementGroup;
    return { groupId: id, bundles: bundleSpecs };
  },
  read: (data) => new PlacementGroup(data as GroupReference),
});
serializers.byId.set("PlacementGroup", serializers.byClass.get(PlacementGroup) as never);

const strategies: ReadonlySet<unknown> = new Set([
  "PACK",
  "SPREAD",
  "STRICT_PACK",
  "STRICT_SPREAD",
]);

const groupStrategy: Check = (value) =>
  strategies.has(value) ? undefined : `must be one of ${[...strategies].join(", ")}`;

function checkBundles(bundles: unknown): void {
  if (!Array.isArray(bundles) || bundles.length === 0) {
    throw new InvalidOptionError(
      "bundles",
      `placementGroup takes a list of bundles, not ${Array.isArray(bundles) ? "an empty one" : show(bundles)}`,
    );
  }
  for (const [index, one] of bundles.entries()) {
    const problem = checkBundle(one);
    if (problem === undefined) continue;
    throw new InvalidOptionError(
      "bundles",
      `placementGroup: bundles[${index}] ${problem} not ${show(one)}`,
    );
  }
}

function selectorsFor(bundles: readonly Amounts[]): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length !== bundles.length) {
      return `must be a list of ${bundles.length}, one for each bundle`;
    }
    return value.map(labelSelector).find((one) => one !== undefined);
  };
}
