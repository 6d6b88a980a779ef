// node examples/actors/supervision.ts
//
// Actors die: by a bug, by memory, by you. What is tried again is your decision, and every death
// says why.

import * as ray from "rayling";

class WorkerClass {
  #jobs = 0;
  constructor() {
    if (ray.getRuntimeContext().wasCurrentActorReconstructed())
      console.log("a worker starts again, with a fresh state");
  }
  work(job: number): string {
    this.#jobs += 1;
    return `job ${job} was job number ${this.#jobs} of this life`;
  }
  crash(): never {
    process.exit(7);
  }
  leak(): number {
    const kept: number[][] = [];
    for (;;) kept.push(Array.from({ length: 100 }, (_, index) => index + kept.length / 3));
  }
  /** The first two attempts take the worker with them. */
  async unlucky(attempts: ray.ActorHandle<CounterClass>): Promise<string> {
    const attempt = await ray.get(attempts.next.remote());
    if (attempt < 3) process.exit(1);
    return `went through at attempt ${attempt}`;
  }
  retire(): never {
    ray.exitActor();
  }
  __ray_shutdown__(): void {
    console.log("the shutdown hook of a worker: connections are closed here");
  }
}

class CounterClass {
  #n = 0;
  next(): number {
    return (this.#n += 1);
  }
}

const Worker = ray.remote(WorkerClass);
const Counter = ray.remote(CounterClass);
const explain = async (what: string, ref: ray.ObjectRef): Promise<void> => {
  const answer = await ray.get(ref).catch((error: Error) => `${error.name}: ${error.message}`);
  console.log(`${what}: ${String(answer).replaceAll(/ \(actor-\w+\)/g, "")}`);
};

await ray.init();

// At most once, unless told otherwise: the call in flight may or may not have run; the actor comes
// back empty.
const worker = Worker.options({ maxRestarts: 2 }).remote();
await explain("first", worker.work.remote(1));
await explain("crash", worker.crash.remote());
await explain("next", worker.work.remote(2));
await ray.kill(worker, { noRestart: false });
await explain("after a kill that allows restarts", worker.work.remote(3));
await explain("the last crash", worker.crash.remote());
await explain("too late", worker.work.remote(4));

// With retries a call that was lost is made again, as often as you say.
const attempts = Counter.remote();
const stubborn = Worker.options({ maxRestarts: -1, maxTaskRetries: 5 }).remote();
await explain("retried", stubborn.unlucky.remote(attempts));

// An actor that eats too much is ended before it takes the process with it.
const small = Worker.options({ runtimeEnv: { resourceLimits: { maxOldGenerationSizeMb: 32 } } });
await explain("out of memory", small.remote().leak.remote());

// And one that wants to go, goes: its hook runs, nobody restarts it.
await explain("retired", Worker.options({ maxRestarts: -1 }).remote().retire.remote());
await ray.shutdown();
