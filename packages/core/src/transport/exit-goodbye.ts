/**
 * Links of a process that ends without closing them: they say goodbye at exit, so that peers need
 * not wait for a timeout.
 */
import { clockMs } from "../shared/clock.ts";
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

/** The most time that an ending process waits for room for all of its goodbyes. */
const goodbyeMs = 1000;

/**
 * Says goodbye over this link when the process exits, unless the link closes before. A killed
 * process says nothing.
 */
export function sayGoodbyeAtExit(link: Link): void {
  const { links } = exitMessages;
  links.add(link);
  void link.closed.then(() => links.delete(link));
  if (exitMessages.isExpected) return;
  exitMessages.isExpected = true;
  process.once("exit", () => {
    const until = clockMs() + goodbyeMs;
    for (const one of links) one.sayGoodbyeNow(until);
  });
}
