/**
 * Rows of one height of which only those in sight exist. One of them is chosen: by a click, or by
 * the arrows, Page Up and Down, Home and End.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const rowHeight = 30;

/** Browsers end elements at 17 (Firefox) or 33 million pixels: rows beyond were out of reach. */
const highest = 15_000_000;

/** Rows before and behind those in sight. */
const spare = 10;

interface VirtualRowsProps {
  readonly label: string;
  readonly count: number;
  readonly chosen: number | undefined;
  readonly onChoose: (at: number) => void;
  /** Called with the first and the last row that may be seen. */
  readonly onShow: (from: number, to: number) => void;
  /** A row of column headers. */
  readonly head: ComponentChildren;
  /** Cells of a row. */
  readonly cells: (at: number) => ComponentChildren;
}

export function VirtualRows(props: VirtualRowsProps): JSX.Element {
  const { label, count, chosen, onChoose, onShow, head, cells } = props;
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 600 });
  const bodyHeight = Math.min(highest, count * rowHeight);
  const ratio = ratioOf(count, sight.height);
  const top = sight.top * ratio;
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count - 1, Math.ceil((top + sight.height) / rowHeight) + spare);
  const look = (): void => {
    const { current } = box;
    if (current !== null) setSight({ top: current.scrollTop, height: current.clientHeight });
  };
  useLayoutEffect(look, [count]);
  useEffect(() => onShow(first, last));
  const move = (to: number): void => {
    const at = Math.min(count - 1, Math.max(0, to));
    const { current } = box;
    if (current === null || count === 0) return;
    const { clientHeight } = current;
    const [above, below] = [at * rowHeight, (at + 2) * rowHeight - clientHeight];
    const moved = ratioOf(count, clientHeight);
    // A browser may round to whole pixels, each of which may be more than a row: to the inner side.
    if (current.scrollTop * moved > above) current.scrollTop = Math.floor(above / moved);
    else if (current.scrollTop * moved < below) current.scrollTop = Math.ceil(below / moved);
    onChoose(at);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(sight.height / rowHeight) - 2);
    const to = targetOf(event.key, chosen ?? -1, page, count);
    if (to === undefined || event.target !== box.current) return;
    event.preventDefault();
    move(to);
  };
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  return (
    <div
      class="virtual"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-activedescendant={chosen === undefined ? undefined : `row-${chosen}`}
      tabIndex={0}
      ref={box}
      onScroll={look}
      onKeyDown={onKeyDown}
    >
      <div role="row" class="virtual-head" aria-rowindex={1}>
        {head}
      </div>
      <div role="rowgroup" class="virtual-body" style={{ height: `${bodyHeight}px` }}>
        {shown.map((at) => (
          <div
            key={at}
            id={`row-${at}`}
            role="row"
            aria-rowindex={at + 2}
            aria-selected={at === chosen}
            style={{ top: `${at * rowHeight - top + sight.top}px` }}
            onClick={() => onChoose(at)}
          >
            {cells(at)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** How many pixels of all rows a pixel of the scroll bar stands for: more than 1 of many rows. */
function ratioOf(count: number, height: number): number {
  const [whole, shown] = [count * rowHeight, Math.min(highest, count * rowHeight)];
  // The row of column headers is scrolled over, too.
  return whole === shown ? 1 : (whole + rowHeight - height) / (shown + rowHeight - height);
}

function targetOf(key: string, at: number, page: number, count: number): number | undefined {
  switch (key) {
    case "ArrowDown":
      return at + 1;
    case "ArrowUp":
      return at - 1;
    case "PageDown":
      return at + page;
    case "PageUp":
      return at - page;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}
