/**
 * The policy and the critic that learn on a CPU: public names of @rayling/trainer/tiny, which alone
 * loads jax-js.
 */

export { CharTokenizer } from "./tokenizer.ts";
export type { OptimizerSettings } from "./optimizer/optimizer-settings.ts";
export type { TinySettings } from "./tiny-settings.ts";
export type { SupervisedPair, Supervision, SupervisionResult } from "./supervision.ts";
export { TinyCritic, TinyCriticActor } from "./tiny-critic.ts";
export { TinyPolicy, TinyPolicyActor } from "./tiny-policy.ts";
