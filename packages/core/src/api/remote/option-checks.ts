/** Checks of the options of actor classes and tasks, where they are given. */
import type { RestartIntensity } from "../../rpc/directory.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import {
  type Check,
  type Checks,
  checkOptions,
  checkValues,
  count,
  flag,
  isRecord,
  isolationKind,
  nameText,
  oneOf,
  retryPolicy,
  returnCount,
  taskIsolation,
  text,
} from "../../shared/options.ts";
import { environment } from "../../shared/runtime-env.ts";
import { schedulingChecks } from "../scheduling/scheduling.ts";
import { withWholePath } from "../working-dir.ts";
import type { ActorOptions, TaskOptions } from "./options.ts";
import { methodChecks } from "../../caller/call-options.ts";

const intensityChecks: Checks<RestartIntensity> = { restarts: count(0), withinMs: count(1) };

/** Checks every value of a record. */
function recordOf(check: (name: string, value: unknown) => string | undefined): Check {
  return (value) => {
    if (!isRecord(value)) return "must be an object";
    for (const [name, one] of Object.entries(value)) {
      const problem = check(name, one);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

const pendingLimit: Check = (value) =>
  value === -1 || count(1)(value) === undefined
    ? undefined
    : "must be -1 or a whole number of at least 1";

const groupSizes: Check = recordOf((name, size) =>
  count(1)(size) === undefined ? undefined : `.${name} must be greater than 0`,
);

/** Returns the options that are given; `partial`: they are to be merged over others. */
export function checkedActor(name: string, some: ActorOptions, partial = false): ActorOptions {
  const options = checkOptions(`actor class ${name}`, some, {
    name: nameText,
    namespace: text,
    getIfExists: flag,
    maxRestarts: count(-1),
    restartIntensity: (value) => {
      checkValues(`actor class ${name}: restartIntensity`, value, intensityChecks);
      const { restarts, withinMs }: Readonly<Record<string, unknown>> = { ...Object(value) };
      return restarts === undefined || withinMs === undefined
        ? "needs restarts and withinMs"
        : undefined;
    },
    lifetime: oneOf("detached", "session", "non_detached"),
    maxTaskRetries: count(-1),
    retryExceptions: retryPolicy,
    maxConcurrency: count(1),
    ...schedulingChecks,
    concurrencyGroups: groupSizes,
    methods: recordOf((method, given) => {
      checkValues(`actor class ${name}: methods.${method}`, given, methodChecks);
      return undefined;
    }),
    allowOutOfOrderExecution: flag,
    isolation: isolationKind,
    threadName: nameText,
    maxPendingCalls: pendingLimit,
    runtimeEnv: environment,
  });
  if (!partial && options.isolation === "shared" && options.runtimeEnv !== undefined) {
    throw new InvalidOptionError(
      "runtimeEnv",
      `actor class ${name}: runtimeEnv needs a host of its own, and isolation "shared" gives none; use "thread" or "process"`,
    );
  }
  if (!partial && options.threadName !== undefined && options.isolation !== "shared") {
    throw new InvalidOptionError(
      "threadName",
      `actor class ${name}: threadName names a thread that actors share, and needs isolation "shared"`,
    );
  }
  if (!partial && options.getIfExists === true && options.name === undefined) {
    throw new InvalidOptionError("getIfExists", `actor class ${name}: getIfExists needs a name`);
  }
  return settled(`actor class ${name}`, options);
}

/** Returns the options that are given. */
export function checkedTask(name: string, some: TaskOptions): TaskOptions {
  const options = checkOptions(`task ${name}`, some, {
    name: nameText,
    ...schedulingChecks,
    isolation: taskIsolation,
    runtimeEnv: environment,
    maxRetries: count(-1),
    retryExceptions: retryPolicy,
    numReturns: returnCount,
    generatorBackpressureNumObjects: count(1),
    detached: flag,
  });
  return settled(`task ${name}`, options);
}

function settled<Options extends ActorOptions | TaskOptions>(
  where: string,
  options: Options,
): Options {
  const { runtimeEnv } = options;
  return runtimeEnv === undefined
    ? options
    : { ...options, runtimeEnv: withWholePath(where, runtimeEnv) };
}
