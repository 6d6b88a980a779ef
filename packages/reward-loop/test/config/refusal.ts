import { expect } from "vitest";
import { RewardConfigError } from "../../src/config/reward-config-error.ts";

/** What a configuration is refused with. */
export function refusal(run: () => unknown): RewardConfigError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(RewardConfigError);
    return error as RewardConfigError;
  }
  throw new Error("it was not refused");
}
