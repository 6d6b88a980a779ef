/** Frames of a room: its title, what is wrong with its data, and sections. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface RoomProps {
  readonly title: string;
  readonly problem?: string | undefined;
  readonly children: ComponentChildren;
}

/** The title takes the focus when the room is entered, so that the keyboard goes on from there. */
export function Room({ title, problem, children }: RoomProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – rayling`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <main>
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {problem === undefined ? null : (
        <p class="problem" role="status">
          {problem}
        </p>
      )}
      {children}
    </main>
  );
}

interface PanelProps {
  readonly title: string;
  readonly note?: string | undefined;
  readonly children: ComponentChildren;
}

export function Panel({ title, note, children }: PanelProps): JSX.Element {
  return (
    <section class="panel">
      <h2>
        {title}
        {note === undefined ? null : <span class="note"> {note}</span>}
      </h2>
      {children}
    </section>
  );
}

export interface Fact {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly isWarning?: boolean;
}

/** Figures side by side. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(({ name, value, isWarning }) => (
        <div key={name} class={isWarning === true ? "warning" : ""}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A region that scrolls by itself, also by the keyboard. */
export function Scrolling({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scrolling" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

export function Waiting(): JSX.Element {
  return <p class="dim">Reading …</p>;
}
