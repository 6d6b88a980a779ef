/**
 * Rayling as its users write it: one actor, `ray.get` of one ref or of a list. The default session,
 * nothing tuned.
 */
import * as ray from "@rayling/core";
import { Adder } from "./actors.ts";
import { type Subject, sum } from "./subject.ts";

export const raylingName = "rayling";
export const processName = "rayling, process";

/**
 * The actor has a thread of its own. Call it inside a session; `close` ends the actor, not the
 * session.
 */
export function raylingSubject(): Promise<Subject> {
  return subjectOf(raylingName, { isolation: "thread" });
}

/** The actor has a process of its own, at the other end of a unix socket. */
export function raylingProcessSubject(): Promise<Subject> {
  return subjectOf(processName, { isolation: "process" });
}

/** The actor is in a process that the agent of that node started. */
export function raylingFarSubject(name: string, nodeId: string): Promise<Subject> {
  return subjectOf(name, {
    schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false },
  });
}

async function subjectOf(name: string, options: ray.ActorOptions): Promise<Subject> {
  const adder = Adder.options(options).remote();
  await ray.get(adder.add.remote(1, 1));
  return {
    kind: "own",
    name,
    addOne: (a, b) => ray.get(adder.add.remote(a, b)),
    async addMany(base, count) {
      const refs: ray.ObjectRef<number>[] = [];
      for (let index = 0; index < count; index++) refs.push(adder.add.remote(base, index));
      return sum(await ray.get(refs));
    },
    close: () => ray.kill(adder),
  };
}
