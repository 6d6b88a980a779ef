/**
 * The error of a host that cannot start with its `runtimeEnv`.
 */
import { RayError } from "./base.ts";

/**
 * The thread or process of an actor or task cannot start with its `runtimeEnv`. It is not retried.
 * Code "RUNTIME_ENV_SETUP".
 */
export class RuntimeEnvSetupError extends RayError {
  constructor(whose: string, message: string) {
    super("RUNTIME_ENV_SETUP", `the runtimeEnv of ${whose} does not work: ${message}`);
  }
}
