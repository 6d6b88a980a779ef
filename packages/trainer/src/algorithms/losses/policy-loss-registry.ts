/**
 * Policy losses by verl's names (`actor.policy_loss.loss_mode`). A registry is a value that the
 * caller creates and passes on.
 */

import { TrainerInputError } from "../../errors.ts";
import { bypassMode } from "./bypass.ts";
import type { PolicyLoss } from "./policy-loss.ts";
import { clipCov, geoMean, klCov } from "./rowwise.ts";
import {
  cispo,
  decoupledFromRollout,
  dppoKl,
  dppoTv,
  dro,
  gpg,
  gspo,
  sapo,
  vanilla,
} from "./tokenwise.ts";

/** Policy losses by name. */
export interface PolicyLossRegistry {
  /**
   * Returns the loss. The same again is fine; another one under a name that is taken throws
   * TrainerInputError.
   */
  register(name: string, loss: PolicyLoss): PolicyLoss;
  /** Throws TrainerInputError, which lists the names there are. Case sensitive. */
  get(name: string): PolicyLoss;
  /** Returns the names of all registered losses. */
  names(): string[];
}

/** Creates a registry that has verl's losses. */
export function createPolicyLossRegistry(): PolicyLossRegistry {
  const losses = new Map<string, PolicyLoss>(Object.entries(verl));
  return {
    register(name, loss) {
      const known = losses.get(name);
      if (known !== undefined && known !== loss) {
        throw new TrainerInputError("lossMode", `another policy loss is registered as "${name}"`);
      }
      losses.set(name, loss);
      return loss;
    },
    get(name) {
      const loss = losses.get(name);
      if (loss !== undefined) return loss;
      throw new TrainerInputError(
        "lossMode",
        `there is no policy loss "${name}"; there are ${[...losses.keys()].join(", ")}`,
      );
    },
    names: () => [...losses.keys()],
  };
}

const verl: Readonly<Record<string, PolicyLoss>> = {
  vanilla,
  dppo_tv: dppoTv,
  dppo_kl: dppoKl,
  gspo,
  sapo,
  gpg,
  clip_cov: clipCov,
  kl_cov: klCov,
  geo_mean: geoMean,
  dro,
  cispo,
  bypass_mode: bypassMode,
  // verl's recipe async_reward_agent defines this loss.
  decoupled: decoupledFromRollout,
};
