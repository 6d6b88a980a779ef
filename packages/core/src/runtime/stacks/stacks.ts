/**
 * Where each runtime of a session is: the driver from its own memory, a host by its control, and a
 * thread that does not answer by an inspector.
 */
import type { Remote } from "comlink";
import type { HostControl } from "../../host/host-control.ts";
import type { RuntimeLook, SentCall, StackAnswer, StackRow, WaitLook } from "../../rpc/stacks.ts";
import type { TaskRow } from "../../rpc/state.ts";
import { clockMs } from "../../shared/clock.ts";
import type { LocalDirectory } from "../directory.ts";
import type { Host } from "../launch/host.ts";
import { answerOf, silenceOf } from "../observe/actor-status.ts";
import { openThreadLooks, type ThreadLooks } from "./thread-stacks.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface StacksParts {
  readonly driverId: string;
  readonly nodeId: string;
  readonly directory: LocalDirectory;
  /** Returns the driver's own waits. */
  readonly viewWaits: () => readonly WaitLook[];
  /** Returns tasks that were sent to a host and are not answered. */
  readonly tasksAt: (hostId: string, timeoutMs: number) => Promise<readonly TaskRow[]>;
}

/** A free thread answers sooner, in ms. */
const freeMs = 200;

/** Others have this long to say what they sent to a silent host, in ms. */
const sentMs = 500;

const nothing: RuntimeLook = { calls: [], moreCalls: 0, waits: [], stack: [] };

/** @param timeoutMs how long hosts have to answer, and inspectors to interrupt them */
export async function stacksOf(parts: StacksParts, timeoutMs: number): Promise<StackAnswer> {
  const { directory, viewWaits, driverId, nodeId } = parts;
  const hosts = directory.hosts();
  const driver: StackRow = {
    ...nothing,
    workerId: driverId,
    workerType: "DRIVER",
    isolation: "process",
    nodeId,
    pid: process.pid,
    // It answers this.
    thread: "FREE",
    reason: undefined,
    actors: [],
    sent: [],
    waits: viewWaits(),
  };
  const threads = threadsOf(hosts);
  try {
    const rows = await Promise.all(hosts.map((host) => rowOf(host, parts, { threads, timeoutMs })));
    return { timeMs: Date.now(), rows: [driver, ...rows.filter((row) => row !== undefined)] };
  } finally {
    threads.close();
  }
}

interface How {
  readonly threads: ThreadLooks;
  readonly timeoutMs: number;
}

/** Opens the inspector only when the first thread does not answer. */
function threadsOf(hosts: readonly Host[]): ThreadLooks {
  const ids = hosts.filter((host) => isThreadHere(host)).map(({ id }) => id);
  let opened: ThreadLooks | undefined;
  return {
    of: async (hostId) => (opened ??= openThreadLooks(ids))?.of(hostId),
    close: () => opened?.close(),
  };
}

function isThreadHere({ isolation, isRemote }: Host): boolean {
  return isolation === "thread" && isRemote !== true;
}

async function rowOf(host: Host, parts: StacksParts, how: How): Promise<StackRow | undefined> {
  const look = await lookInto(host, how);
  // It has ended meanwhile.
  if (look === undefined && !host.channel.isOpen) return undefined;
  const about = aboutHost(host, parts.directory);
  if (look !== undefined) {
    const thread = look.stack.length === 0 ? "FREE" : "BUSY";
    return { ...about, ...look, thread, reason: undefined, sent: [] };
  }
  const tasks = await parts.tasksAt(host.id, sentMs);
  const sent = tasks.map(({ taskId, name, actorId }): SentCall => ({ taskId, name, actorId }));
  return { ...about, ...nothing, thread: "SILENT", reason: reasonOf(host), sent };
}

async function lookInto(host: Host, { threads, timeoutMs }: How): Promise<RuntimeLook | undefined> {
  const startedMs = clockMs();
  const ask = async (control: Remote<HostControl>): Promise<RuntimeLook> => control.look();
  const answer = answerOf<RuntimeLook>(host, ask, timeoutMs);
  if (!isThreadHere(host)) return answer;
  const soon = await before(answer, freeMs);
  if (soon !== undefined) return soon;
  const leftMs = Math.max(0, timeoutMs - (clockMs() - startedMs));
  // A thread may be free again before the inspector has its turn.
  return firstOf([before(threads.of(host.id), leftMs), answer]);
}

/** Resolves with undefined when it takes longer. */
async function before<T>(work: Promise<T | undefined>, limitMs: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = timers.setTimeout(() => resolve(undefined), limitMs).unref();
  try {
    return await Promise.race([work, promise]);
  } finally {
    timers.clearTimeout(timer);
  }
}

/** Resolves with the first that is there, or with undefined when none is. */
async function firstOf<T>(all: readonly Promise<T | undefined>[]): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const isNone = all.map(async (one) => {
    const value = await one;
    if (value !== undefined) resolve(value);
  });
  void Promise.all(isNone).then(() => resolve(undefined));
  return promise;
}

type About = Pick<StackRow, "workerId" | "workerType" | "isolation" | "nodeId" | "pid" | "actors">;

function aboutHost({ id, isolation, nodeId, pid }: Host, directory: LocalDirectory): About {
  const actors = directory
    .actors()
    .filter(({ record }) => record.life.host?.id === id && record.state !== "dead")
    .map(({ spec: { info, name } }) => {
      const { actorId, className } = info;
      return { actorId, className, name: name ?? "" };
    });
  return { workerId: id, workerType: "WORKER", isolation, nodeId, pid, actors };
}

function reasonOf(host: Host): string {
  if (isThreadHere(host)) {
    return "code that is not JavaScript holds its thread (a child process or a file that is waited for, an add-on), and cannot be interrupted";
  }
  const place = host.isRemote === true ? "on another machine" : "of its own";
  return `${silenceOf(host)}; the stack of a process ${place} cannot be seen from here`;
}
