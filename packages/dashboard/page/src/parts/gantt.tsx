/**
 * Steps as rows over time: bars of their phases, the rewards in flight below them, and how long the
 * step only waited. Figures of it stand in a table beside it.
 */
import type { StepPhases } from "@rayling/trainer/runs";
import type { JSX } from "preact";
import { duration, figure } from "../data/text.ts";
import { ticksWithin } from "../data/ticks.ts";

/**
 * verl's timers in the order in which a step runs them: the same phase has the same colour in one
 * run and the next.
 */
const order = [
  "gen",
  "reward",
  "old_log_prob",
  "ref",
  "values",
  "adv",
  "update_critic",
  "update_actor",
  "testing",
  "save_checkpoint",
];

const colours = 8;

interface GanttProps {
  readonly rows: readonly StepPhases[];
}

export function Gantt({ rows }: GanttProps): JSX.Element {
  const names = shownNames(rows);
  const scale = scaleOf(rows);
  const [first, last] = [rows[0]?.step, rows.at(-1)?.step];
  const most = rows.map(({ inFlight }) => Math.max(0, ...(inFlight?.counts ?? [])));
  const label = `Phases of steps ${first} to ${last}: ${names.join(", ")}; at most ${figure(Math.max(0, ...most))} rewards in flight`;
  return (
    <>
      <p class="legend">
        {names.map((name, at) => (
          <span key={name}>
            <span aria-hidden="true" class={`block c${at}`} /> {name}
          </span>
        ))}
        <span>
          <span aria-hidden="true" class="block in-flight" /> rewards in flight
        </span>
      </p>
      <div class="gantt" role="img" aria-label={label}>
        <div class="gantt-row">
          <span class="dim">s</span>
          <div class="gantt-axis">
            {scale.ticks.map((tick) => (
              <span key={tick} style={{ left: scale.at(tick * 1000) }}>
                {figure(tick)}
              </span>
            ))}
          </div>
          <span class="dim gantt-wait">waited</span>
        </div>
        {rows.map((row) => (
          <Step key={row.step} row={row} names={names} scale={scale} />
        ))}
      </div>
    </>
  );
}

interface StepProps {
  readonly row: StepPhases;
  readonly names: readonly string[];
  readonly scale: Scale;
}

function Step({ row, names, scale }: StepProps): JSX.Element {
  const colourOf = (name: string): number => {
    const at = names.indexOf(name);
    return at === -1 ? names.length - 1 : at;
  };
  return (
    <div class="gantt-row">
      <span>{row.step}</span>
      <div class="gantt-tracks">
        {scale.ticks.map((tick) => (
          <span key={tick} class="gantt-tick" style={{ left: scale.at(tick * 1000) }} />
        ))}
        {row.tracks.map(({ track, phases }) => (
          <div key={track} class="gantt-track">
            {phases.map(([name, fromMs, toMs], at) => (
              <span
                key={at}
                class={`phase c${colourOf(name)}`}
                title={`${name} of step ${row.step}: ${duration(toMs - fromMs)}`}
                style={{ left: scale.at(fromMs), width: scale.width(toMs - fromMs) }}
              />
            ))}
          </div>
        ))}
        <InFlightArea row={row} scale={scale} />
      </div>
      <span class="number gantt-wait">{secondsText(row.exposedWaitSeconds)}</span>
    </div>
  );
}

function InFlightArea({ row, scale }: Omit<StepProps, "names">): JSX.Element | null {
  const { inFlight } = row;
  if (inFlight === null) return null;
  const { fromMs, eachMs, counts } = inFlight;
  const most = Math.max(...counts, 1);
  const points = counts.map((count, at) => `${at},${(1 - count / most).toFixed(3)}`);
  const last = counts.length - 1;
  return (
    <div class="gantt-rewards">
      <svg
        viewBox={`0 0 ${last} 1`}
        preserveAspectRatio="none"
        style={{ left: scale.at(fromMs), width: scale.width(last * eachMs) }}
      >
        <polygon class="rewards" points={`0,1 ${points.join(" ")} ${last},1`} />
      </svg>
    </div>
  );
}

export function secondsText(seconds: number | null): string {
  return seconds === null ? "–" : duration(1000 * seconds);
}

interface Scale {
  /** In seconds. */
  readonly ticks: readonly number[];
  readonly at: (ms: number) => string;
  readonly width: (ms: number) => string;
}

function scaleOf(rows: readonly StepPhases[]): Scale {
  const times = rows.flatMap(({ tracks, inFlight }) => [
    ...tracks.flatMap(({ phases }) => phases.flatMap(([, fromMs, toMs]) => [fromMs, toMs])),
    ...(inFlight === null
      ? []
      : [inFlight.fromMs, inFlight.fromMs + inFlight.eachMs * (inFlight.counts.length - 1)]),
  ]);
  const low = times.reduce((one, other) => Math.min(one, other), 0);
  const span = times.reduce((one, other) => Math.max(one, other), low + 1) - low;
  const share = (ms: number): string => `${((100 * ms) / span).toFixed(3)}%`;
  const ticks = ticksWithin(low / 1000, (low + span) / 1000, 6);
  return { ticks, at: (ms) => share(ms - low), width: share };
}

/** Names that have a colour of their own: those that took longest; the last one is "other". */
function shownNames(rows: readonly StepPhases[]): readonly string[] {
  const totals = new Map<string, number>();
  for (const [name, fromMs, toMs] of rows.flatMap(({ tracks }) =>
    tracks.flatMap(({ phases }) => phases),
  )) {
    totals.set(name, (totals.get(name) ?? 0) + toMs - fromMs);
  }
  const byTime = [...totals.keys()].toSorted((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0));
  const isAll = byTime.length <= colours;
  const own = isAll ? byTime : byTime.slice(0, colours - 1);
  const sorted = own.toSorted((a, b) => placeOf(a) - placeOf(b));
  return isAll ? sorted : [...sorted, "other"];
}

function placeOf(name: string): number {
  const place = order.indexOf(name);
  return place === -1 ? order.length : place;
}
