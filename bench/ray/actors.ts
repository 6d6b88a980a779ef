/**
 * The remote classes and tasks of the rows, and nothing else: hosts import this file. rows.py has
 * the same ones.
 */
import * as ray from "@rayling/core";

const ok: Uint8Array = Uint8Array.of(0x6f, 0x6b);

type Refs = readonly ray.ObjectRef<Uint8Array>[];

export const smallValue: ray.RemoteFunction<() => Uint8Array> = ray.remote(
  function smallValue(): Uint8Array {
    return ok;
  },
);

export const putSmall: ray.RemoteFunction<(count: number) => void> = ray.remote(function putSmall(
  count: number,
): void {
  for (let index = 0; index < count; index++) ray.put(0);
});

export const putBig: ray.RemoteFunction<(count: number, elements: number) => void> = ray.remote(
  function putBig(count: number, elements: number): void {
    for (let index = 0; index < count; index++) ray.put(new BigInt64Array(elements));
  },
);

export const refsInside: ray.RemoteFunction<(count: number) => ray.ObjectRef<number>[]> =
  ray.remote(function refsInside(count: number): ray.ObjectRef<number>[] {
    return Array.from({ length: count }, () => ray.put(1));
  });

class ActorInstance {
  smallValue(): Uint8Array {
    return ok;
  }
  smallValueArg(_value: number): Uint8Array {
    return ok;
  }
  async submitTasks(count: number): Promise<void> {
    await ray.get(many(count, () => smallValue.remote()));
  }
}

class AsyncActorInstance {
  async smallValue(): Promise<Uint8Array> {
    return ok;
  }
  async smallValueArg(_value: number): Promise<Uint8Array> {
    return ok;
  }
}

/** The part that a caller needs of `Actor` and of `AsyncActor`. */
export type Server = ray.ActorHandle<ActorInstance> | ray.ActorHandle<AsyncActorInstance>;

class ClientInstance {
  readonly #servers: readonly Server[];
  constructor(servers: readonly Server[]) {
    this.#servers = servers;
  }
  async callServers(count: number): Promise<void> {
    await ray.get(this.#servers.flatMap((server) => many(count, () => server.smallValue.remote())));
  }
  async callServersWithRef(count: number): Promise<void> {
    const ref = ray.put(0);
    await ray.get(
      this.#servers.flatMap((server) => many(count, () => server.smallValueArg.remote(ref))),
    );
  }
}

/** Without `maxConcurrency: 1` an async method would make it a concurrent actor. */
export const Actor: ray.ActorClass<typeof ActorInstance> = ray.remote(ActorInstance, {
  numCpus: 0,
  maxConcurrency: 1,
});
export const AsyncActor: ray.ActorClass<typeof AsyncActorInstance> = ray.remote(AsyncActorInstance);
export const Client: ray.ActorClass<typeof ClientInstance> = ray.remote(ClientInstance, {
  numCpus: 0,
  maxConcurrency: 1,
});

export const callAll: ray.RemoteFunction<
  (actors: readonly Server[], count: number) => Promise<void>
> = ray.remote(async function callAll(actors: readonly Server[], count: number): Promise<void> {
  await ray.get(many(count, (index) => inTurn(actors, index).smallValue.remote()));
});

function inTurn<One>(all: readonly One[], index: number): One {
  const found = all[index % all.length];
  if (found === undefined) throw new TypeError("there is nobody to take turns");
  return found;
}

export function many(count: number, call: (index: number) => ray.ObjectRef<Uint8Array>): Refs {
  return Array.from({ length: count }, (_, index) => call(index));
}
