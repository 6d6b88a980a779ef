/**
 * A configuration that cannot be used: it names the key and the problem. Code "CONFIG".
 */
export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
  /** Tells this error from others: compare this, not the message. */
  readonly code: string = "CONFIG";
  /** The key with dots, `reward.reward_manager.name`; a file name if the whole file is wrong. */
  readonly key: string;
  /** The problem, without key and suggestion. */
  readonly problem: string;
  /** The value of the key, if it has one. */
  readonly value: unknown;
  /** The known key that is spelled most alike. */
  readonly nearest: string | undefined;

  constructor(key: string, problem: string, value?: unknown, nearest?: string) {
    super(`${key}: ${problem}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
    this.key = key;
    this.problem = problem;
    this.value = value;
    this.nearest = nearest;
  }
}
