/** Whether hosts that this one starts share memory with it. */
import { threadSlot } from "../shared/thread-slot.ts";

const slot: { isOwn: boolean } = threadSlot("own-process", () => ({ isOwn: false }));

/** Called by the entry of host processes. */
export function markOwnProcess(): void {
  slot.isOwn = true;
}

/** Whether this host is a process: every host that it starts is another one. */
export function isOwnProcess(): boolean {
  return slot.isOwn;
}
