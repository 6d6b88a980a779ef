/**
 * How rollouts of another policy are made up for: verl's `algorithm.rollout_correction` and its
 * presets, which are data.
 */

import { TrainerInputError } from "../../errors.ts";

/** verl `algorithm.rollout_correction`. */
export interface RolloutCorrectionSettings {
  /** Weights of tokens by themselves, or of whole rows. Default null: none. */
  readonly rolloutIs?: "token" | "sequence" | null;
  /**
   * A number, or its text: weights above are that (truncated). "low_high": weights outside are 0
   * (IcePop). Default 2; null: no weights.
   */
  readonly rolloutIsThreshold?: number | string | null;
  /** Divide weights by their mean. Default false. */
  readonly rolloutIsBatchNormalize?: boolean;
  /**
   * Tests that rows or tokens must all pass, with commas between: token_k1, seq_mean_k3, ...
   * Default null: none.
   */
  readonly rolloutRs?: string | null;
  /**
   * One bound for all tests, or one for each with commas between. A bound of k1 is "low_high",
   * bounds of the ratio, or one number for the ratio and its inverse; a bound of k2 or k3 is its
   * upper bound.
   */
  readonly rolloutRsThreshold?: number | string | null;
  /**
   * Whether log-probabilities of the rollout stand for those of the old policy, which are then not
   * computed. Default false.
   */
  readonly bypassMode?: boolean;
  /** Loss of the bypass. Default "ppo_clip". */
  readonly lossType?: "ppo_clip" | "reinforce";
}

const base = { rolloutIs: null, rolloutRs: null } as const;
const bypass = { ...base, bypassMode: true } as const;
const reinforce = { ...bypass, lossType: "reinforce" } as const;
const tokenIcepop = { rolloutIs: "token", rolloutIsThreshold: "0.5_5.0" } as const;
const geoRs = { rolloutRs: "seq_mean_k1", rolloutRsThreshold: "0.999_1.001" } as const;
const k3Rs = { rolloutRs: "seq_mean_k3", rolloutRsThreshold: 0.01 } as const;

/** Names of verl's presets of the rollout correction. */
export type RolloutCorrectionPreset =
  | "decoupled_token_is"
  | "decoupled_seq_is"
  | "decoupled_token_icepop"
  | "decoupled_seq_is_rs"
  | "decoupled_geo_rs"
  | "decoupled_geo_rs_seq_tis"
  | "decoupled_geo_rs_token_tis"
  | "decoupled_k3_rs"
  | "decoupled_k3_rs_seq_tis"
  | "decoupled_k3_rs_token_tis"
  | "bypass_ppo_clip"
  | "bypass_ppo_clip_geo_rs"
  | "bypass_ppo_clip_k3_rs"
  | "bypass_pg_is"
  | "bypass_pg_token_icepop"
  | "bypass_pg_geo_rs"
  | "bypass_pg_geo_rs_seq_tis"
  | "bypass_pg_geo_rs_token_tis"
  | "disabled";

const presets: Readonly<Record<RolloutCorrectionPreset, RolloutCorrectionSettings>> = {
  decoupled_token_is: { ...base, rolloutIs: "token" },
  decoupled_seq_is: { ...base, rolloutIs: "sequence" },
  decoupled_token_icepop: { ...base, ...tokenIcepop },
  decoupled_seq_is_rs: {
    rolloutIs: "sequence",
    rolloutRs: "seq_sum_k1",
    rolloutRsThreshold: "0.5_2.0",
  },
  decoupled_geo_rs: { ...base, ...geoRs },
  decoupled_geo_rs_seq_tis: { rolloutIs: "sequence", ...geoRs },
  decoupled_geo_rs_token_tis: { rolloutIs: "token", ...geoRs },
  decoupled_k3_rs: { ...base, ...k3Rs },
  decoupled_k3_rs_seq_tis: { rolloutIs: "sequence", ...k3Rs },
  decoupled_k3_rs_token_tis: { rolloutIs: "token", ...k3Rs },
  bypass_ppo_clip: bypass,
  bypass_ppo_clip_geo_rs: { ...bypass, ...geoRs },
  bypass_ppo_clip_k3_rs: { ...bypass, ...k3Rs },
  bypass_pg_is: { ...reinforce, rolloutIs: "sequence" },
  bypass_pg_token_icepop: { ...reinforce, ...tokenIcepop },
  bypass_pg_geo_rs: { ...reinforce, ...geoRs },
  bypass_pg_geo_rs_seq_tis: { ...reinforce, ...geoRs, rolloutIs: "sequence" },
  bypass_pg_geo_rs_token_tis: { ...reinforce, ...geoRs, rolloutIs: "token" },
  disabled: base,
};

/**
 * Returns a preset of verl's by its name (`RolloutCorrectionConfig.decoupled_token_is()` ...), with
 * every setting written out. Throws TrainerInputError for another name.
 */
export function rolloutCorrectionPreset(
  name: RolloutCorrectionPreset,
): Required<RolloutCorrectionSettings> {
  if (!Object.hasOwn(presets, name)) {
    throw new TrainerInputError(
      "rolloutCorrection",
      `there is no rollout correction preset "${name}"; there are ${Object.keys(presets).join(", ")}`,
    );
  }
  return withDefaults(presets[name]);
}

export function withDefaults({
  rolloutIs = null,
  rolloutIsThreshold = 2,
  rolloutIsBatchNormalize = false,
  rolloutRs = null,
  rolloutRsThreshold = null,
  bypassMode = false,
  lossType = "ppo_clip",
}: RolloutCorrectionSettings): Required<RolloutCorrectionSettings> {
  return {
    rolloutIs,
    rolloutIsThreshold,
    rolloutIsBatchNormalize,
    rolloutRs,
    rolloutRsThreshold,
    bypassMode,
    lossType,
  };
}
