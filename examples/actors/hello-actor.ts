// node examples/actors/hello-actor.ts
//
// An actor is an object that lives in a thread of its own. You hold a handle: each method has a
// `.remote()` that returns a ref at once.

import { threadId } from "node:worker_threads";
import * as ray from "rayling";

const Greeter = ray.remote(
  class Greeter {
    readonly #greeting: string;
    #calls = 0;
    constructor(greeting: string) {
      this.#greeting = greeting;
    }
    greet(name: string): string {
      if (name === "") throw new RangeError("there is nobody to greet");
      this.#calls += 1;
      return `${this.#greeting}, ${name}! (call ${this.#calls} of this actor, on thread ${threadId})`;
    }
    leave(): never {
      process.exit(3);
    }
  },
);

await ray.init({ namespace: "hello" });
console.log(`the driver is on thread ${threadId}`);

// Two actors of one class have a state and a thread each. Arguments and results are typed end to
// end.
const english = Greeter.remote("Hello");
const french = Greeter.options({ name: "french" }).remote("Bonjour");
const refs = [
  english.greet.remote("Ada"),
  french.greet.remote("Blaise"),
  english.greet.remote("Alan"),
];
for (const line of await ray.get(refs)) console.log(line);

// The result of a call is a fine argument for the next: pass the ref, and the value goes from actor
// to actor.
console.log(await ray.get(french.greet.remote(english.greet.remote("you"))));

// Who knows its name finds it, in the driver and in every actor.
const found = await ray.getActor<{ greet(name: string): string }>("french");
console.log(await ray.get(found.greet.remote("Simone")));

// An error comes back as what it was, with the stack of the place where it was thrown.
try {
  await ray.get(english.greet.remote(""));
} catch (error) {
  console.log(
    `${String(error)}; a RangeError: ${error instanceof RangeError}, from over there: ${error instanceof ray.TaskError}`,
  );
}

// A death has a cause, and everybody who waits hears of it.
const [farewell, after] = [french.leave.remote(), french.greet.remote("Marie")];
for (const ref of [farewell, after]) {
  const error = await ray.get(ref).catch((caught: unknown) => caught);
  if (error instanceof ray.ActorDiedError)
    console.log(`${error.name}: ${error.deathCause.message}`);
}
console.log(await ray.get(english.greet.remote("again")));

await ray.shutdown();
