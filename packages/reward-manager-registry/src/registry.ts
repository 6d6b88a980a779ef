/**
 * Names of reward manager classes, and their construction. A registry is a value that its maker
 * passes on: the import of a module registers nothing, and two registries in one process are
 * independent. Invariants: a name never changes its class; initClass of a class succeeds at most
 * once per registry.
 */

import {
  InvalidRewardManagerError,
  RewardManagerConflictError,
  UnknownRewardManagerError,
} from "./errors.ts";
import { DapoRewardManager } from "./managers/dapo.ts";
import { GdpoRewardManager } from "./managers/gdpo.ts";
import { NaiveRewardManager } from "./managers/naive.ts";
import { checkArguments } from "./managers/reward-manager.ts";
import type {
  RewardManager,
  RewardManagerArguments,
  RewardManagerClass,
} from "./managers/reward-manager.ts";

/** Reward managers by name (verl `register`, `get_reward_manager_cls`). */
export interface RewardManagerRegistry {
  /**
   * Registers and returns the class. A repeated registration is allowed; another class under the
   * name throws RewardManagerConflictError, and the first one stays.
   */
  register<Class extends RewardManagerClass>(name: string, managerClass: Class): Class;
  /** Throws UnknownRewardManagerError, which lists the known names. Case sensitive. */
  get(name: string): RewardManagerClass;
  /** Returns whether a class is registered under the name. */
  has(name: string): boolean;
  /** Returns the names in order of registration. */
  names(): string[];
  /**
   * Creates an instance by name, or of a class that need not be registered; runs the class's
   * initClass first, once. Rejects with InvalidManagerOptionError for an argument that managers do
   * not have, before any code of the class runs.
   */
  create(
    nameOrClass: string | RewardManagerClass,
    args?: RewardManagerArguments,
  ): Promise<RewardManager>;
}

/** Makes an empty registry. */
export function createRegistry(): RewardManagerRegistry {
  const classes = new Map<string, RewardManagerClass>();
  const initialised = new Map<RewardManagerClass, Promise<void>>();

  function get(name: string): RewardManagerClass {
    const managerClass = classes.get(name);
    if (managerClass === undefined) throw new UnknownRewardManagerError(name, [...classes.keys()]);
    return managerClass;
  }

  async function initialiseOnce(
    managerClass: RewardManagerClass,
    args: RewardManagerArguments,
  ): Promise<void> {
    const running = initialised.get(managerClass) ?? runInitClass(managerClass, args);
    initialised.set(managerClass, running);
    try {
      await running;
    } catch (error) {
      if (initialised.get(managerClass) === running) initialised.delete(managerClass);
      throw error;
    }
  }

  return {
    register(name, managerClass) {
      const holder = classes.get(name);
      if (holder !== undefined && holder !== managerClass) {
        throw new RewardManagerConflictError(name, className(holder), className(managerClass));
      }
      classes.set(name, managerClass);
      return managerClass;
    },
    get,
    has: (name) => classes.has(name),
    names: () => [...classes.keys()],
    async create(nameOrClass, args = {}) {
      const managerClass = typeof nameOrClass === "string" ? get(nameOrClass) : nameOrClass;
      checkArguments(typeof nameOrClass === "string" ? nameOrClass : className(managerClass), args);
      await initialiseOnce(managerClass, args);
      const manager = new managerClass(args);
      if (typeof manager.runSingle !== "function")
        throw new InvalidRewardManagerError(className(managerClass));
      return manager;
    },
  };
}

/** Makes a registry with every manager of this package: naive, dapo, gdpo. */
export function createDefaultRegistry(): RewardManagerRegistry {
  const registry = createRegistry();
  registry.register("naive", NaiveRewardManager);
  registry.register("dapo", DapoRewardManager);
  registry.register("gdpo", GdpoRewardManager);
  return registry;
}

async function runInitClass(
  managerClass: RewardManagerClass,
  args: RewardManagerArguments,
): Promise<void> {
  await managerClass.initClass?.(args);
}

function className(managerClass: RewardManagerClass): string {
  return managerClass.name || "(anonymous class)";
}
