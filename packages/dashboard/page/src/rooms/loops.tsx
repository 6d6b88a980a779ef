/** Reward loop: how scoring goes, live. */
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { useHistory } from "../data/curve-history.ts";
import type { EndpointState, LoopsAnswer, LoopState } from "../data/loops.ts";
import { count, duration, figure } from "../data/text.ts";
import { useLive } from "../data/views.ts";
import { Chart } from "../parts/chart.tsx";
import { Facts, Panel, Room, Waiting } from "../parts/panel.tsx";
import { State, Table } from "../parts/table.tsx";

export function LoopsRoom(): JSX.Element {
  const { data, problem } = useLive<LoopsAnswer>("loops");
  return (
    <Room title="Reward loop" problem={problem}>
      {data === undefined ? <Waiting /> : null}
      {data?.panels.length === 0 ? <p>No reward loop is open in this session.</p> : null}
      {data?.panels.map(({ state, rewardLog }, at) => (
        <Loop
          key={at}
          state={state}
          name={data.panels.length > 1 ? `Loop ${at + 1}` : undefined}
          rewardLog={rewardLog}
        />
      ))}
    </Room>
  );
}

interface LoopProps {
  readonly state: LoopState;
  /** Undefined where there is one. */
  readonly name: string | undefined;
  readonly rewardLog: string | undefined;
}

function Loop({ state, name, rewardLog }: LoopProps): JSX.Element {
  const rate = useRate(state);
  const of = name === undefined ? "" : ` of ${name}`;
  return (
    <section aria-label={name ?? "Loop"}>
      {name === undefined ? null : <h2>{name}</h2>}
      <Figures state={state} rate={rate} />
      {rewardLog === undefined ? null : (
        <p>
          Every sample is in <a href="#/samples">{rewardLog}</a>.
        </p>
      )}
      <div class="columns">
        <Rates state={state} rate={rate} />
        <Latencies state={state} />
        <Outcomes state={state} of={of} />
        <Lanes state={state} of={of} />
        {state.endpoints.map((endpoint) => (
          <Endpoint key={endpoint.endpoint} endpoint={endpoint} />
        ))}
        <Spending state={state} of={of} />
        <Models state={state} of={of} />
      </div>
    </section>
  );
}

/** Rates are taken over so long. */
const rateMs = 5000;

/** Samples per second in the last seconds that the page has watched. */
function useRate({ elapsedMs, done }: LoopState): number | undefined {
  const looks = useRef<{ readonly elapsedMs: number; readonly done: number }[]>([]);
  if (looks.current.at(-1)?.elapsedMs !== elapsedMs) {
    const kept = looks.current.filter((one) => one.elapsedMs >= elapsedMs - rateMs);
    looks.current = [...kept, { elapsedMs, done }];
  }
  const [first] = looks.current;
  if (first === undefined || first.elapsedMs === elapsedMs) {
    return elapsedMs > 0 ? (done * 1000) / elapsedMs : undefined;
  }
  return ((done - first.done) * 1000) / (elapsedMs - first.elapsedMs);
}

interface StateProps {
  readonly state: LoopState;
}

interface NamedProps extends StateProps {
  /** Behind the names of tables, where there are several loops. */
  readonly of: string;
}

interface RateProps extends StateProps {
  readonly rate: number | undefined;
}

function Figures({ state, rate }: RateProps): JSX.Element {
  const { done, inFlight, slots, left, cached, attempts, spent, meanScore, oldestMs } = state;
  const { begun, won } = state.hedges;
  const invalid = done - state.valid;
  const isGoing = left !== undefined && left > 0 && rate !== undefined && rate > 0;
  return (
    <Facts
      facts={[
        { name: "In flight", value: `${count(inFlight)} on ${count(slots)} slots` },
        { name: "Queued", value: count(Math.max(0, inFlight - slots)) },
        { name: "Done", value: count(done) },
        { name: "Per second", value: figure(rate) },
        { name: "Left", value: left === undefined ? "–" : count(left) },
        { name: "Time left", value: isGoing ? duration((left / rate) * 1000) : "–" },
        { name: "Oldest in flight", value: duration(oldestMs) },
        { name: "Invalid", value: count(invalid), isWarning: invalid > 0 },
        { name: "Mean score", value: figure(meanScore) },
        { name: "From the cache", value: count(cached) },
        { name: "Tries per sample", value: figure(done === 0 ? undefined : attempts / done) },
        ...(begun > 0
          ? [{ name: "Hedges", value: `${count(begun)}, ${count(won)} answered first` }]
          : []),
        ...(spent > 0 ? [{ name: "Spent", value: figure(spent) }] : []),
        { name: "Workers", value: count(state.workers) },
      ]}
    />
  );
}

const rateSeries = [
  { label: "done per second", colour: 0 },
  { label: "in flight", colour: 1 },
];

function Rates({ state, rate }: RateProps): JSX.Element {
  const history = useHistory(state, [rate, state.inFlight]);
  return (
    <Panel title="Rate">
      <Chart
        label={`${figure(rate)} samples done per second, ${count(state.inFlight)} in flight`}
        series={rateSeries}
        data={history}
        isTime
      />
    </Panel>
  );
}

const latencySeries = [{ label: "samples", colour: 2, isBars: true }];

function Latencies({ state: { latencies, latencyBounds } }: StateProps): JSX.Element {
  const used = latencies.flatMap((one, at) => (one > 0 ? [at] : []));
  const [first = 0, last = 0] = [used[0], used.at(-1)];
  const shape = JSON.stringify(latencies);
  const [data, names] = useMemo(() => {
    const shown = latencies.slice(first, last + 1);
    const nameOf = (at: number): string => {
      const bound = latencyBounds[at];
      return bound === undefined ? "more" : `≤ ${duration(bound)}`;
    };
    return [
      [shown.map((_, at) => at), [...shown]] as [number[], number[]],
      shown.map((_, at) => nameOf(first + at)),
    ] as const;
  }, [shape]);
  const text = names.map((name, at) => `${name}: ${count(data[1][at])}`).join(", ");
  return (
    <Panel title="Latency">
      {used.length === 0 ? (
        <p class="dim">No sample is done.</p>
      ) : (
        <Chart
          label={`Samples by latency. ${text}`}
          series={latencySeries}
          data={data}
          names={names}
        />
      )}
    </Panel>
  );
}

function Outcomes({ state: { valid, failures, done }, of }: NamedProps): JSX.Element {
  const share = (part: number): string => `${figure((100 * part) / done)} %`;
  const rows = [
    { outcome: "valid", samples: valid },
    ...Object.entries(failures).map(([outcome, samples]) => ({ outcome, samples })),
  ];
  return (
    <Panel title="Outcomes">
      <Table
        label={`Outcomes${of}`}
        keyOf={(row) => String(row["outcome"])}
        columns={[
          {
            key: "outcome",
            title: "Outcome",
            show: (row) => <State state={String(row["outcome"])} />,
          },
          { key: "samples", title: "Samples", isNumber: true },
          { key: "share", title: "Share", isNumber: true },
        ]}
        rows={rows.map((row) => ({ ...row, share: done === 0 ? "–" : share(row.samples) }))}
      />
    </Panel>
  );
}

function Lanes({ state: { lanes, answeredBy }, of }: NamedProps): JSX.Element {
  const answers = Object.entries(answeredBy).map(([name, samples]) => ({ name, samples }));
  return (
    <Panel title="Lanes">
      <Table
        label={`Lanes${of}`}
        empty="No sample has come."
        keyOf={(row) => String(row["lane"])}
        columns={[
          { key: "lane", title: "Lane" },
          { key: "inFlight", title: "In flight", isNumber: true },
          { key: "done", title: "Done", isNumber: true },
        ]}
        rows={lanes.map((lane) => ({ ...lane }))}
      />
      {answers.length === 0 ? null : (
        <Table
          label={`Answered by${of}`}
          keyOf={(row) => String(row["name"])}
          columns={[
            { key: "name", title: "Answered by" },
            { key: "samples", title: "Samples", isNumber: true },
          ]}
          rows={answers}
        />
      )}
    </Panel>
  );
}

const endpointSeries = [
  { label: "limit", colour: 7 },
  { label: "in flight", colour: 1 },
  { label: "waiting", colour: 3 },
];

function Endpoint({ endpoint: one }: { readonly endpoint: EndpointState }): JSX.Element {
  const { endpoint, waiting, inFlight, granted, refused, requests, tokens, breaker } = one;
  const limit = one.limit ?? undefined;
  const history = useHistory(one, [limit, inFlight, waiting]);
  return (
    <Panel title={`Endpoint ${endpoint}`}>
      <Facts
        facts={[
          { name: "In flight", value: `${count(inFlight)} of ${figure(limit)}` },
          { name: "Waiting", value: count(waiting) },
          { name: "Let through", value: count(granted) },
          { name: "Refused (429, 503)", value: count(refused), isWarning: refused > 0 },
          ...(requests === undefined
            ? []
            : [{ name: "Requests a minute", value: useText(requests) }]),
          ...(tokens === undefined ? [] : [{ name: "Tokens a minute", value: useText(tokens) }]),
          ...(breaker === undefined
            ? []
            : [{ name: "Circuit breaker", value: breaker, isWarning: breaker !== "closed" }]),
        ]}
      />
      <Chart
        label={`Calls to ${endpoint}: ${count(inFlight)} in flight of at most ${figure(limit)}, ${count(waiting)} waiting`}
        series={endpointSeries}
        data={history}
        isTime
      />
    </Panel>
  );
}

function useText(rate: { readonly used: number; readonly limit: number }): string {
  return `${count(rate.used)} of ${count(rate.limit)}`;
}

function Spending({ state: { spending }, of }: NamedProps): JSX.Element | null {
  if (spending.length === 0) return null;
  return (
    <Panel title="Spending">
      <Table
        label={`Spending${of}`}
        keyOf={(row) => String(row["name"])}
        columns={[
          { key: "name", title: "Of", show: ({ name }) => (name === "" ? "all" : String(name)) },
          { key: "spent", title: "Spent", isNumber: true },
          { key: "cap", title: "At most", isNumber: true },
          { key: "state", title: "Cap" },
        ]}
        rows={spending.map((row) => ({ ...row }))}
      />
    </Panel>
  );
}

function Models({ state: { rewardModels }, of }: NamedProps): JSX.Element | null {
  const models = Object.entries(rewardModels);
  if (models.length === 0) return null;
  return (
    <Panel title="Reward models">
      <Table
        label={`Reward models${of}`}
        keyOf={(row) => String(row["name"])}
        columns={[
          { key: "name", title: "Model" },
          { key: "engine", title: "Engine" },
          { key: "state", title: "State" },
          { key: "servers", title: "Servers" },
        ]}
        rows={models.map(([name, model]) => ({ name, ...model }))}
      />
    </Panel>
  );
}
