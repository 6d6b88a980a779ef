import type { RewardModelOptions } from "./reward-model-manager.ts";

/** verl `reward.reward_model`. */
export interface RewardModelUse extends RewardModelOptions {
  /** By the name under which its servers have it. */
  readonly model: string;
  /** Folder of its tokenizer and chat template; needed where it scores by itself. Functions of yours get it as `rewardModelTokenizer`. */
  readonly tokenizer?: string;
  /** Folder of the policy's tokenizer: responses that come as token ids, and its end of sequence. */
  readonly policyTokenizer?: string;
  /** Tries of a request. Default 16. */
  readonly maxRetries?: number;
  /** Of one try. Default: as long as it takes. */
  readonly timeoutMs?: number;
}
