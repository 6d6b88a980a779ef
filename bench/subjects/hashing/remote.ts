/** The actor and the task that hash, and nothing else: hosts import this file. */
import * as ray from "@rayling/core";
import { hash, type Hashed, type Item } from "./work.ts";

class HasherInstance {
  hash(item: Item): Hashed {
    return hash(item);
  }
}

export const Hasher: ray.ActorClass<typeof HasherInstance> = ray.remote(HasherInstance);

export const hashTask: ray.RemoteFunction<(item: Item) => Hashed> = ray.remote(function hashTask(
  item: Item,
): Hashed {
  return hash(item);
});
