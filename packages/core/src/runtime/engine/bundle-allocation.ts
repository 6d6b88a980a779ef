/** A part of a bundle as its holder has it: on the machine of the bundle. */
import type { Allocation } from "../../placement/placement.ts";

/** The differences from the part that the session's own scheduler gave. */
export interface OnMachine {
  readonly nodeId: string;
  /** Whether the machine has ended as a node. */
  readonly isOver?: () => boolean;
  /** Called once. */
  readonly onRelease?: () => void;
}

export function onMachine(
  allocation: Allocation,
  { nodeId, isOver, onRelease }: OnMachine,
): Allocation {
  let isReleased = false;
  return {
    nodeId,
    isDrained: false,
    get isLost() {
      return allocation.isLost || isOver?.() === true;
    },
    release: () => {
      allocation.release();
      if (isReleased) return;
      isReleased = true;
      onRelease?.();
    },
    lend: (lent) => allocation.lend(lent),
  };
}
