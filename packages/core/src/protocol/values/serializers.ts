/**
 * Classes that travel by a serializer of their own, by class and by id.
 */
import { InvalidOptionError } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import type { Serializer } from "./encodable.ts";

interface Serializers {
  readonly byClass: Map<unknown, Serializer>;
  readonly byId: Map<string, Serializer>;
}

/**
 * The state belongs to the thread, because modules register while they load, before a runtime
 * exists.
 */
export const serializers: Serializers = threadSlot("serializers", () => ({
  byClass: new Map(),
  byId: new Map(),
}));

/** @throws InvalidOptionError when another class has taken the id */
export function addSerializer(registeredClass: unknown, serializer: Serializer): void {
  const taken = [...serializers.byClass].find(
    ([other, { id }]) => id === serializer.id && other !== registeredClass,
  );
  if (taken !== undefined) {
    throw new InvalidOptionError(
      "id",
      `a serializer with id "${serializer.id}" is registered for another class`,
    );
  }
  serializers.byClass.set(registeredClass, serializer);
  serializers.byId.set(serializer.id, serializer);
}
