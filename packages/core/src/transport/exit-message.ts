/** Links of a process that ends without closing them: it says goodbye as it goes, so that the other side need not find out by its silence. */
import { threadSlot } from "../shared/thread-slot.ts";
import type { Link } from "./link/link.ts";

interface ExitMessages {
  readonly links: Set<Link>;
  isExpected: boolean;
}

const exitMessages: ExitMessages = threadSlot("exitMessages", () => ({
  links: new Set(),
  isExpected: false,
}));

/** How long a process that ends waits for room for all its goodbyes together. */
const goodbyeMs = 1000;

/** From now on, until it is closed. A process that is killed says nothing. */
export function sayGoodbyeAtExit(link: Link): void {
  const { links } = exitMessages;
  links.add(link);
  void link.closed.then(() => links.delete(link));
  if (exitMessages.isExpected) return;
  exitMessages.isExpected = true;
  process.once("exit", () => {
    const until = performance.now() + goodbyeMs;
    for (const one of links) one.sayGoodbyeNow(until);
  });
}
