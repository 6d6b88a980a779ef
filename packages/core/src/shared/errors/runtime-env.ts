/** What goes wrong with the settings of a host. */
import { RayError } from "./base.ts";

/** The thread or process of an actor or task could not be started with its `runtimeEnv`. It is not tried again. */
export class RuntimeEnvSetupError extends RayError {
  constructor(whose: string, message: string) {
    super("RUNTIME_ENV_SETUP", `the runtimeEnv of ${whose} does not work: ${message}`);
  }
}
