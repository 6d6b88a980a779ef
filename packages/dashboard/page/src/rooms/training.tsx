/** Training: curves of runs over their steps, smoothed, one run beside another. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { changeQuery } from "../data/address.ts";
import { figure } from "../data/text.ts";
import { alignedCurves } from "../data/training.ts";
import type { CurvesAnswer, Metric, Run } from "../data/training.ts";
import { useLive } from "../data/views.ts";
import { Chart } from "../parts/chart.tsx";
import { Panel, Room, Waiting } from "../parts/panel.tsx";

interface RoomProps {
  readonly query: URLSearchParams;
}

export function TrainingRoom({ query }: RoomProps): JSX.Element {
  const { data, problem } = useLive<{ readonly runs: readonly Run[] }>("runs");
  return (
    <Room title="Training" problem={problem}>
      {data === undefined ? <Waiting /> : null}
      {data?.runs.length === 0 ? (
        <p>No training of this session writes a run folder (the logger “file”).</p>
      ) : null}
      {data === undefined || data.runs.length === 0 ? null : (
        <Runs runs={data.runs} query={query} />
      )}
    </Room>
  );
}

/** Colours of curves: as many runs can be told apart. */
const mostRuns = 8;

function Runs({ runs, query }: RoomProps & { readonly runs: readonly Run[] }): JSX.Element {
  const chosen = chosenOf(runs, query.get("runs"));
  const text = query.get("text") ?? "";
  const smoothing = Number(query.get("smoothing") ?? 0.5);
  const asked = new URLSearchParams({ runs: chosen.map(({ run }) => run).join(","), text });
  const { data, problem } = useLive<CurvesAnswer>("curves", asked.toString());
  return (
    <>
      <fieldset class="runs">
        <legend>Runs</legend>
        {runs.map((run) => (
          <RunChoice key={run.run} run={run} chosen={chosen} />
        ))}
      </fieldset>
      <search class="bar">
        <label>
          Metrics{" "}
          <input
            type="search"
            placeholder="the main ones"
            value={text}
            onInput={({ currentTarget }) => changeQuery({ text: currentTarget.value })}
          />
        </label>
        <label>
          Smoothing{" "}
          <input
            type="range"
            min="0"
            max="0.98"
            step="0.02"
            value={smoothing}
            onInput={({ currentTarget }) => changeQuery({ smoothing: currentTarget.value })}
          />
        </label>
        <span class="dim" role="status">
          {data === undefined ? "" : foundText(data)}
        </span>
      </search>
      {problem === undefined ? null : <p class="problem">{problem}</p>}
      <div class="columns">
        {data?.metrics.map((metric) => (
          <Curves key={metric.name} metric={metric} chosen={chosen} smoothing={smoothing} />
        ))}
      </div>
    </>
  );
}

function foundText({ found, total, metrics }: CurvesAnswer): string {
  const first = metrics.length < found ? `, the first ${metrics.length} shown` : "";
  return `${found} of ${total} metrics${first}`;
}

/** By default the runs of this session. */
function chosenOf(runs: readonly Run[], asked: string | null): readonly Run[] {
  const numbers = asked?.split(",");
  const chosen = runs.filter(({ run, isOwn }) => numbers?.includes(String(run)) ?? isOwn);
  return chosen.slice(0, mostRuns);
}

interface RunChoiceProps {
  readonly run: Run;
  readonly chosen: readonly Run[];
}

function RunChoice({ run, chosen }: RunChoiceProps): JSX.Element {
  const at = chosen.findIndex((one) => one.run === run.run);
  const toggle = (): void => {
    const others = chosen.filter((one) => one.run !== run.run);
    const next = at === -1 ? [...others, run] : others;
    changeQuery({ runs: next.map((one) => one.run).join(",") || "none" });
  };
  const steps = run.lastStep < 0 ? "no step" : `step ${run.lastStep}`;
  return (
    <label>
      <input type="checkbox" checked={at !== -1} onChange={toggle} />
      <span aria-hidden="true" class={at === -1 ? "line" : `line c${at}`} /> {run.name}{" "}
      <span class="dim">
        {steps}
        {run.isOwn ? ", of this session" : ""}
      </span>
    </label>
  );
}

interface CurvesProps {
  readonly metric: Metric;
  readonly chosen: readonly Run[];
  readonly smoothing: number;
}

function Curves({ metric, chosen, smoothing }: CurvesProps): JSX.Element {
  const { name, curves } = metric;
  const shape = JSON.stringify([curves, smoothing]);
  const data = useMemo(() => alignedCurves(curves, smoothing), [shape]);
  const series = curves.map(({ run }) => {
    const at = chosen.findIndex((one) => one.run === run);
    return { label: chosen[at]?.name ?? "", colour: Math.max(0, at) };
  });
  const last = curves.map(({ steps, values }, at) => {
    return `${series[at]?.label ?? ""}: ${figure(values.at(-1))} at step ${steps.at(-1) ?? 0}`;
  });
  return (
    <Panel title={name} note={figure(curves[0]?.values.at(-1))}>
      <Chart label={`${name} by step. ${last.join("; ")}`} series={series} data={data} isFree />
    </Panel>
  );
}
