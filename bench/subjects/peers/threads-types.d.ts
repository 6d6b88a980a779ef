/** threads.js names no types in its exports. */
declare module "threads" {
  import type { Worker as NodeWorker } from "node:worker_threads";

  export class Worker extends NodeWorker {
    constructor(path: string);
  }

  export function spawn<Exposed>(worker: Worker): Promise<{
    readonly [Name in keyof Exposed]: Exposed[Name] extends (...args: infer Args) => infer Result
      ? (...args: Args) => Promise<Result>
      : never;
  }>;

  export const Thread: { terminate(thread: object): Promise<void> };
}

declare module "threads/worker" {
  export function expose(api: object): void;
}
