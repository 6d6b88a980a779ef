/** Lines of actors and tasks, the newest at the end. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LogTail } from "../data/session.ts";

export function Logs({ tail }: { readonly tail: LogTail }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const last = tail.lines.at(-1)?.number;
  useEffect(() => {
    const { current } = box;
    if (current !== null) current.scrollTop = current.scrollHeight;
  }, [last]);
  if (!tail.isCollected) {
    return <p class="dim">This session does not collect what its hosts write (logToDriver).</p>;
  }
  if (tail.lines.length === 0) return <p class="dim">Nothing was written.</p>;
  return (
    <div class="logs" role="log" aria-label="Last lines" tabIndex={0} ref={box}>
      {tail.lines.map(({ number, owner, stream, text }) => (
        <div key={number} class={stream}>
          <span class="dim">{owner} </span>
          {text}
        </div>
      ))}
    </div>
  );
}
