/** Training: curves of runs over their steps, one run beside another, and what each step did. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type {
  ListedRun,
  Metric,
  MetricsAnswer,
  TrainingAnswer,
} from "../../../src/training/answers.ts";
import { changeQuery } from "../data/address.ts";
import { report } from "../data/report.ts";
import { figure } from "../data/text.ts";
import { alignedCurves } from "../data/training.ts";
import { useLive } from "../data/views.ts";
import { Chart } from "../parts/chart.tsx";
import { Panel, Room, Waiting } from "../parts/panel.tsx";
import { Figures, Rewards, Settings, Warnings } from "./training/about.tsx";
import { Details, usualSteps } from "./training/details.tsx";

interface RoomProps {
  readonly query: URLSearchParams;
}

export function TrainingRoom({ query }: RoomProps): JSX.Element {
  const asked = new URLSearchParams(query);
  asked.delete("smoothing");
  if (!asked.has("steps")) asked.set("steps", usualSteps);
  const { data, problem } = useLive<TrainingAnswer>("runs", asked.toString());
  return (
    <Room title={report?.title ?? "Training"} problem={problem}>
      {data === undefined ? <Waiting /> : null}
      {data?.runs.length === 0 ? (
        <p>No training of this session writes a run folder (the logger “file”).</p>
      ) : null}
      {data === undefined || data.runs.length === 0 ? null : <Runs answer={data} query={query} />}
    </Room>
  );
}

interface RunsProps extends RoomProps {
  readonly answer: TrainingAnswer;
}

function Runs({ answer, query }: RunsProps): JSX.Element {
  const { runs, about, details, metrics } = answer;
  const chosen = answer.chosen.flatMap((number) => runs.find(({ run }) => run === number) ?? []);
  return (
    <>
      <fieldset class="runs">
        <legend>Runs</legend>
        {runs.map((run) => (
          <RunChoice key={run.run} run={run} chosen={chosen} />
        ))}
      </fieldset>
      <Warnings about={about} chosen={chosen} />
      {details === null ? null : <Figures about={about} chosen={chosen} />}
      <Metrics metrics={metrics} chosen={chosen} query={query} />
      {details === null ? null : (
        <>
          <Details details={details} chosen={chosen} query={query} />
          <Rewards about={about} chosen={chosen} />
          <Settings about={about} chosen={chosen} />
        </>
      )}
    </>
  );
}

interface MetricsProps extends RoomProps {
  readonly metrics: MetricsAnswer;
  readonly chosen: readonly ListedRun[];
}

function Metrics({ metrics, chosen, query }: MetricsProps): JSX.Element {
  const smoothing = Number(query.get("smoothing") ?? 0.5);
  return (
    <>
      <search class="bar">
        <label>
          Metrics{" "}
          <input
            type="search"
            placeholder="the main ones"
            value={query.get("text") ?? ""}
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
          {foundText(metrics)}
        </span>
      </search>
      <div class="columns">
        {metrics.shown.map((metric) => (
          <Curves key={metric.name} metric={metric} chosen={chosen} smoothing={smoothing} />
        ))}
      </div>
    </>
  );
}

function foundText({ found, total, shown }: MetricsAnswer): string {
  const first = shown.length < found ? `, the first ${shown.length} shown` : "";
  return `${found} of ${total} metrics${first}`;
}

interface RunChoiceProps {
  readonly run: ListedRun;
  readonly chosen: readonly ListedRun[];
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
        {run.isOwn && report === undefined ? ", of this session" : ""}
      </span>
    </label>
  );
}

interface CurvesProps {
  readonly metric: Metric;
  readonly chosen: readonly ListedRun[];
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
