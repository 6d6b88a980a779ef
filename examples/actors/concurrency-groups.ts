// node examples/actors/concurrency-groups.ts
//
// How many calls of one actor run at once, and what keeps slow ones from holding up the rest.

import * as ray from "rayling";

class StoreClass {
  readonly #values = new Map<string, number>();
  #running = 0;
  #most = 0;
  async fetch(key: string): Promise<number> {
    return this.#counted(50, () => this.#values.get(key) ?? key.length);
  }
  async write(key: string, value: number): Promise<void> {
    await this.#counted(10, () => this.#values.set(key, value));
  }
  async health(): Promise<string> {
    return `${this.#running} running, ${this.#most} at most`;
  }
  async #counted<T>(ms: number, work: () => T): Promise<T> {
    this.#running += 1;
    this.#most = Math.max(this.#most, this.#running);
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.#running -= 1;
    return work();
  }
}

// Each group has a limit and an order of its own; calls in no group share the default one.
const Store = ray.remote(StoreClass, {
  concurrencyGroups: { io: 4, write: 1, control: 1 },
  methods: {
    fetch: { concurrencyGroup: "io" },
    write: { concurrencyGroup: "write" },
    health: { concurrencyGroup: "control" },
  },
});

const Plain = ray.remote(StoreClass, { maxConcurrency: 1, maxPendingCalls: 10 });

await ray.init();

async function measure(what: string, calls: () => readonly ray.ObjectRef[]): Promise<void> {
  const start = performance.now();
  await ray.get(calls());
  console.log(`${what}: ${Math.round((performance.now() - start) / 10) * 10} ms`);
}

const store = Store.remote();
await ray.get(store.__ray_ready__.remote());
const keys = Array.from({ length: 8 }, (_, index) => `key-${index}`);

await measure("8 fetches of 50 ms, 4 at a time", () => keys.map((key) => store.fetch.remote(key)));
await measure("8 writes of 10 ms, one at a time, in order", () =>
  keys.map((key, index) => store.write.remote(key, index)),
);

// A group that is full does not hold up another: health answers while sixteen fetches wait.
const busy = Array.from({ length: 16 }, (_, index) => store.fetch.remote(`key-${index}`));
console.log("health meanwhile:", await ray.get(store.health.remote()));
await ray.get(busy);

// One call may go by another door than its method's.
const moved = store.fetch.options({ concurrencyGroup: "write" }).remote("key-7");
console.log("a fetch in the group of writes:", await ray.get(moved));

// Without groups and one call at a time, the health check waits for everybody.
const plain = Plain.remote();
const queued = Array.from({ length: 9 }, (_, index) => plain.fetch.remote(`key-${index}`));
await measure("health behind 9 fetches in one line", () => [plain.health.remote()]);
await ray.get(queued);

// maxPendingCalls says no to a caller that is too fast, at once and by name.
try {
  for (let index = 0; ; index++) plain.fetch.remote(`key-${index}`);
} catch (error) {
  console.log(String(error));
}
await ray.shutdown();
