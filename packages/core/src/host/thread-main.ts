/**
 * Entry point of a host thread: makes its runtime from the ports it was started with, then serves until it is ended.
 *
 * Owner, with runtime/launch.ts, of worker_threads' Worker side. Composition only: what the parts do is in their files.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { expose, wrap } from "comlink";
import { setCurrentCaller } from "../caller/current.ts";
import { Caller } from "../caller/caller.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import { Waiting } from "../caller/waiting.ts";
import { type CauseData, causeFromData, causeToData } from "../protocol/cause.ts";
import { RemoteNotRegisteredError } from "../shared/errors.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import { Budget } from "../store/budget.ts";
import { ImmutabilityCheck } from "../store/immutability.ts";
import { SpillFiles } from "../store/spill-files.ts";
import { threadChannel } from "../transport/thread.ts";
import type {
  FailedCreation,
  CreateRequest,
  CreateResult,
  DriverControl,
  HostControl,
  HostSettings,
} from "./control.ts";
import { errorClasses } from "./error-classes.ts";
import { decodeArguments, Instance } from "./instance.ts";
import { guardDriverCode, Loader } from "./loader.ts";
import { remoteDirectory } from "./remote-directory.ts";
import { runTask, taskTarget } from "./task-runner.ts";

const settings = workerData as HostSettings;
const { hostId, driverId } = settings;
const instances: Map<string, Instance> = new Map();
const loader = new Loader();
const driver = wrap<DriverControl>(settings.directory);
const directory = remoteDirectory(driver, hostId, (values) => {
  for (const value of values) caller.exportReferences(value.references ?? [], driverId);
});
let tasksRunning = 0;
const waiting = new Waiting((isWaiting) => {
  if (tasksRunning > 0) directory.setBlocked(hostId, isWaiting);
});

const caller: Caller = new Caller({
  id: hostId,
  directory,
  errorClasses,
  waiting,
  objectStore: {
    budget: new Budget(settings.objectStore.budget),
    files: new SpillFiles(settings.objectStore.spillDirectory, hostId),
    immutability: settings.objectStore.isDevelopment ? new ImmutabilityCheck() : undefined,
  },
  onCall,
});
limitGarbage(settings.objectStore.budget.limitBytes);

guardDriverCode();
// Answers that are ready leave before the thread does, whatever ends it.
process.on("exit", () => caller.flush());
setCurrentCaller(caller, settings.namespace);
caller.addSession(
  driverId,
  threadChannel(settings.data, () => directory.death(driverId)),
);
expose(
  { load, create, terminate, accept, stats, stop: () => caller.flush() } satisfies HostControl,
  settings.control,
);
// The control port keeps the thread alive; nothing else needs to.
parentPort?.unref();

function onCall(call: CallMessage, session: Session): void {
  if (call.route.target === taskTarget) {
    tasksRunning += 1;
    void runTask(call, session, loader, caller).finally(() => {
      tasksRunning -= 1;
      // What the task left waiting does not count for the next one.
      waiting.reset();
    });
    return;
  }
  const instance = instances.get(call.route.target);
  if (instance !== undefined) return instance.receive(call, session);
  // It was here, or the way to it is out of date: the directory knows what became of it.
  session.answerGone(call.id);
}

async function load(key: CreateRequest["key"]): Promise<CreateResult> {
  try {
    await loader.find(key);
    return { ok: true };
  } catch (error) {
    return failed(
      error instanceof RemoteNotRegisteredError ? "not-registered" : "load-failed",
      error,
    );
  }
}

async function create(request: CreateRequest): Promise<CreateResult> {
  const { key, info, args, name, namespace, incarnation } = request;
  try {
    const ActorClass = (await loader.find(key)) as new (...args: unknown[]) => object;
    const instance = new Instance({
      info,
      name,
      namespace,
      incarnation,
      caller,
      onExit: (cause) => {
        instances.delete(info.actorId);
        void driver.exited(info.actorId, incarnation, causeToData(cause)).catch(() => undefined);
      },
    });
    const values = decodeArguments(caller.codec, {
      arguments: args.values,
      dependencies: args.dependencies,
    });
    instance.construct(ActorClass, values);
    instances.set(info.actorId, instance);
    return { ok: true };
  } catch (error) {
    return failed("init-failed", error);
  }
}

/** Its calls in the queue end; the hook runs when what runs has ended. */
function terminate(actorId: string, cause: CauseData): void {
  instances.get(actorId)?.exit(causeFromData(cause));
}

function failed(kind: FailedCreation["kind"], error: unknown): CreateResult {
  return {
    ok: false,
    kind,
    failure: caller.codec.decodeFailure(caller.codec.encodeFailure(error)),
  };
}

function accept(peerId: string, port: MessagePort): void {
  caller.addSession(
    peerId,
    threadChannel(port, () => directory.death(peerId)),
  );
}

function stats(): ReturnType<HostControl["stats"]> {
  const actors = [...instances].map(([actorId, instance]) => ({
    actorId,
    className: instance.info.className,
    ...instance.stats,
  }));
  return {
    hostId,
    actors,
    exportedObjects: caller.store.exportedCount,
    objects: caller.memory.stats,
    outstandingCalls: caller.outstandingCalls,
  };
}
