/**
 * References inside values: object refs, actor handles, remote functions and actor classes, and how
 * they are written and read.
 */
import type { ActorInfo } from "../rpc/directory.ts";
import { entryOf, liveEntryOf, ObjectRef } from "../store/object-ref.ts";
import type { Store } from "../store/store.ts";
import { insideOf, isHandle, lifeOf } from "./handle.ts";
import type { Handles } from "./handles.ts";
import { isRemote, makeRemote, type RemoteData, remoteDataOf } from "./remote-value.ts";

type ReferenceData =
  | readonly ["object", string, number, string]
  | readonly ["actor", ActorInfo, string?, number?]
  | RemoteData;

export class References {
  readonly #store: Store;
  readonly #handles: Handles;

  constructor(store: Store, handles: Handles) {
    this.#store = store;
    this.#handles = handles;
  }

  isReference(value: object): boolean {
    return value instanceof ObjectRef || isHandle(value) || isRemote(value);
  }

  /** References leave inside a value, to that runtime. */
  exportTo(peerId: string, references: readonly object[]): void {
    for (const reference of references) {
      const entry = reference instanceof ObjectRef ? entryOf(reference) : lifeOf(reference);
      if (entry !== undefined) this.#store.exportReference(entry, peerId);
    }
  }

  /** @throws SessionEndedError for a handle whose session has ended */
  write(value: object): ReferenceData {
    if (value instanceof ObjectRef) {
      const entry = liveEntryOf(value);
      return ["object", entry.owner, entry.sequence, entry.label];
    }
    const remote = remoteDataOf(value);
    if (remote !== undefined) return remote;
    const { info, life, caller } = insideOf(value);
    caller.checkAlive();
    return life === undefined ? ["actor", info] : ["actor", info, life.owner, life.sequence];
  }

  read(given: unknown): object {
    const data = given as ReferenceData;
    if (data[0] === "function" || data[0] === "class") return makeRemote(data);
    if (data[0] === "actor") {
      const [, info, owner, sequence] = data;
      if (owner === undefined || sequence === undefined) return this.#handles.weak(info);
      return this.#handles.received(info, owner, sequence);
    }
    this.#handles.arm();
    return new ObjectRef(this.#store.importReference(data[1], data[2], data[3]));
  }

  decline(given: unknown): void {
    const data = given as ReferenceData;
    if (data[0] === "function" || data[0] === "class") return;
    const [owner, sequence] = data[0] === "object" ? [data[1], data[2]] : [data[2], data[3]];
    if (owner === undefined || sequence === undefined) return;
    this.#store.declineReference(owner, sequence);
  }
}
