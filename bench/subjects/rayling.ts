/**
 * Rayling as its users write it: one actor, `ray.get` of one ref or of a list. The default session, nothing tuned.
 */
import * as ray from "@rayling/core";
import { Adder } from "./actors.ts";
import { type Subject, sum } from "./subject.ts";

export const raylingName = "rayling";

/** Call it inside a session; `close` ends the actor, not the session. */
export async function raylingSubject(): Promise<Subject> {
  const adder = Adder.remote();
  await ray.get(adder.add.remote(1, 1));
  return {
    kind: "own",
    name: raylingName,
    addOne: (a, b) => ray.get(adder.add.remote(a, b)),
    async addMany(base, count) {
      const refs: ray.ObjectRef<number>[] = [];
      for (let index = 0; index < count; index++) refs.push(adder.add.remote(base, index));
      return sum(await ray.get(refs));
    },
    close: () => ray.kill(adder),
  };
}
