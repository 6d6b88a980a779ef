/** A configuration that cannot be used: what is wrong with which key. Code "CONFIG". */
export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
  readonly code: string = "CONFIG";
  /** With dots: `reward.reward_manager.name`; a file where the whole of it is wrong. */
  readonly key: string;
  /** What is wrong with it, without key and suggestion. */
  readonly problem: string;
  /** What stands there, if anything does. */
  readonly value: unknown;
  /** One that there is, and that is written much alike. */
  readonly nearest: string | undefined;

  constructor(key: string, problem: string, value?: unknown, nearest?: string) {
    super(`${key}: ${problem}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
    this.key = key;
    this.problem = problem;
    this.value = value;
    this.nearest = nearest;
  }
}
