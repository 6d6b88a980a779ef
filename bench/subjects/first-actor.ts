/** An actor whose module loads nothing but core: what a host takes is then the runtime's. */
import * as ray from "@rayling/core";

class FirstInstance {
  add(a: number, b: number): number {
    return a + b;
  }
}
export const First: ray.ActorClass<typeof FirstInstance> = ray.remote(FirstInstance);
