/** Remote functions: what `remote` makes of a function, and how they start tasks. */
import type { CallPlan } from "../../caller/calls/call.ts";
import { type FunctionData, noteRemote } from "../../caller/remote-value.ts";
import { noteSame, received, type Registration } from "../../host/code/registry.ts";
import { taskTarget } from "../../host/calls/task-runner.ts";
import type { Route } from "../../protocol/message.ts";
import { assignmentOf, type Demand } from "../../rpc/resource-demand.ts";
import type { WorkerRequest } from "../../rpc/directory.ts";
import { MeanDuration } from "../../shared/mean-duration.ts";
import { errorNames, withErrorNames, withoutUndefined } from "../../shared/options.ts";
import { inCurrentGroup, taskDemand } from "../scheduling/scheduling.ts";
import { useCaller } from "../session.ts";
import type {
  FunctionHandle,
  OnlyOptions,
  RemoteArguments,
  Reshaped,
  ShapedResult,
} from "../handle-types.ts";
import { checkedTask } from "./option-checks.ts";
import { taskDefaults, type TaskOptions } from "./options.ts";

/** A function whose calls are tasks. */
export interface RemoteFunction<
  Task extends (...args: never[]) => unknown,
  Own = unknown,
> extends FunctionHandle<Task> {
  /**
   * Starts the task and returns at once.
   *
   * @throws NotEncodableError when an argument cannot travel, naming its path
   */
  remote(...args: RemoteArguments<Parameters<Task>>): ShapedResult<Task, Own>;
  /**
   * Returns the task with other options; these override the current ones.
   *
   * @throws InvalidOptionError
   */
  options<const More extends TaskOptions>(
    options: More & OnlyOptions<More, TaskOptions>,
  ): RemoteFunction<Task, Reshaped<Own, More>>;
}

/** A remote function as `remote` returns it, without the types of its values. */
interface MadeFunction {
  readonly options: (more: TaskOptions) => MadeFunction;
  readonly remote: (...args: readonly unknown[]) => unknown;
}

export function remoteFunction(
  registration: Registration,
  isStream: boolean,
  options: TaskOptions,
): MadeFunction {
  const plans = new TaskPlans(registration, isStream, options);
  const made: MadeFunction = {
    options: (more) => {
      const checked = checkedTask(registration.name, more);
      const other = remoteFunction(registration, isStream, {
        ...options,
        ...withoutUndefined(checked),
      });
      noteSame(other, made);
      return other;
    },
    remote: (...args) => useCaller().calls.callTask(plans.here(), args),
  };
  noteRemote(made, "function", () => {
    const written = withErrorNames(options);
    return ["function", { key: registration.key(), isGenerator: isStream, options: written }];
  });
  return made;
}

/** The stub of a function that arrived in a value. */
export function receivedFunction({ key, isGenerator, options }: FunctionData): object {
  return remoteFunction(received(key), isGenerator, options);
}

/** The plans of a remote function's calls: one, and one for each placement group around it. */
class TaskPlans {
  readonly #registration: Registration;
  readonly #isStream: boolean;
  readonly #options: TaskOptions;
  readonly #where: string;
  readonly #demand: Demand;
  /** Says which tasks may share workers with these. */
  readonly #kind: string;
  /** Made by the first call, when the key is complete. */
  #plan: CallPlan | undefined;
  /**
   * Plans for placement groups that capture their tasks' tasks. They are kept, because a route is
   * named once.
   */
  readonly #captured: Map<string, CallPlan> = new Map();

  constructor(registration: Registration, isStream: boolean, options: TaskOptions) {
    this.#registration = registration;
    this.#isStream = isStream;
    this.#options = options;
    this.#where = `task ${registration.name}`;
    this.#demand = taskDemand(this.#where, options);
    const { isolation, runtimeEnv } = options;
    // Permitted files depend on the module, so other modules cannot share the worker.
    const permitted = runtimeEnv?.permissions === undefined ? undefined : registration.moduleUrl;
    this.#kind = JSON.stringify([isolation, runtimeEnv, permitted]);
  }

  /** Returns the plan for a call that is made here. */
  here(): CallPlan {
    const demand = inCurrentGroup(this.#where, this.#options, this.#demand);
    if (demand === this.#demand) return (this.#plan ??= this.#planFor(demand));
    const plan = this.#captured.get(demand.key) ?? this.#planFor(demand);
    this.#captured.set(demand.key, plan);
    return plan;
  }

  #planFor(demand: Demand): CallPlan {
    const {
      maxRetries = taskDefaults.maxRetries,
      retryExceptions = taskDefaults.retryExceptions,
      detached,
    } = this.#options;
    return {
      route: this.#routeFor(demand),
      maxRetries,
      retryExceptions: errorNames(retryExceptions),
      worker: this.#workerFor(demand),
      duration: new MeanDuration(),
      ...(detached === true ? { isDetached: true } : {}),
    };
  }

  #routeFor(demand: Demand): Route {
    const registration = this.#registration;
    const { name = registration.name, generatorBackpressureNumObjects: ahead } = this.#options;
    const returns = this.#options.numReturns ?? (this.#isStream ? "streaming" : 1);
    const shape = {
      ...(returns === 1 ? {} : { returns }),
      ...(ahead === undefined ? {} : { ahead }),
      ...(name === registration.name ? {} : { name }),
    };
    return {
      target: taskTarget,
      // It tells the worker which function to run, and with which resources.
      method: JSON.stringify({ ...registration.key(), assignment: assignmentOf(demand) }),
      label: name,
      ...(Object.keys(shape).length === 0 ? {} : { shape }),
    };
  }

  #workerFor(demand: Demand): WorkerRequest {
    const { isolation, runtimeEnv } = this.#options;
    const { moduleUrl } = this.#registration;
    const kind = this.#kind;
    return { key: kind + demand.key, demand, isolation, runtimeEnv, moduleUrl, kind };
  }
}
