/** Samples: every outcome of a reward log, found, sorted, compared with another log, and read. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { changeQuery, chooseId } from "../data/address.ts";
import type { Address } from "../data/address.ts";
import { useSamples } from "../data/samples.ts";
import type { KnownLog, ShownSample, Samples, SamplesAbout } from "../data/samples.ts";
import { count, duration, figure } from "../data/text.ts";
import { useLive } from "../data/views.ts";
import { Chart } from "../parts/chart.tsx";
import { Bound, Choice } from "../parts/choice.tsx";
import { Facts, Room, Waiting } from "../parts/panel.tsx";
import { VirtualRows } from "../parts/virtual-rows.tsx";
import { Sample } from "./sample.tsx";

const shows = [
  ["all", "all samples"],
  ["zeros", "zeros"],
  ["invalid", "invalid: no score"],
  ["disagreements", "disagreements"],
] as const;

export function SamplesRoom({ address }: { readonly address: Address }): JSX.Element {
  const { data, problem } = useLive<{ readonly logs: readonly KnownLog[] }>("sampleLogs");
  if (data === undefined || data.logs.length === 0) {
    return (
      <Room title="Samples" problem={problem}>
        {data === undefined ? (
          <Waiting />
        ) : (
          <p>
            No reward log is written by this session. RewardLoopManager writes one with the option
            record; rayling rewards view FILE shows any.
          </p>
        )}
      </Room>
    );
  }
  return <Logs logs={data.logs} address={address} />;
}

interface LogsProps {
  readonly logs: readonly KnownLog[];
  readonly address: Address;
}

function Logs({ logs, address }: LogsProps): JSX.Element {
  const { query, id } = address;
  const asked = new URLSearchParams(query);
  if (!asked.has("log")) asked.set("log", "0");
  const samples = useSamples(useSettled(asked.toString()));
  const { about, problem } = samples;
  const other = query.get("other") ?? "";
  return (
    <Room title="Samples" problem={problem}>
      <Asking logs={logs} query={query} lanes={about?.lanes ?? []} />
      {about === undefined ? (
        <Waiting />
      ) : (
        <>
          <About about={about} />
          <div class="halves">
            <List samples={samples} about={about} query={query} id={id} />
            {id === undefined ? (
              <p class="dim">Choose a sample to read it.</p>
            ) : (
              <Sample
                index={id}
                log={asked.get("log") ?? "0"}
                other={other === "" ? undefined : other}
                names={[nameOf(logs, asked.get("log")), nameOf(logs, other)]}
              />
            )}
          </div>
        </>
      )}
    </Room>
  );
}

function nameOf(logs: readonly KnownLog[], log: string | null): string {
  return logs.find((one) => String(one.log) === log)?.name ?? "";
}

/** Typing is over when nothing has changed for so long. */
const settledMs = 150;

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settledMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

interface AskingProps {
  readonly logs: readonly KnownLog[];
  readonly query: URLSearchParams;
  readonly lanes: readonly string[];
}

function Asking({ logs, query, lanes }: AskingProps): JSX.Element {
  const names = logs.map(({ log, name }) => [String(log), name] as const);
  return (
    <search class="bar">
      {logs.length < 2 ? (
        <span class="dim">{logs[0]?.path}</span>
      ) : (
        <>
          <Choice label="Log" name="log" query={query} of={names} />
          <Choice label="Beside" name="other" query={query} of={[["", "no other"], ...names]} />
        </>
      )}
      <Choice label="Show" name="show" query={query} of={shows} />
      {lanes.length < 2 ? null : (
        <Choice
          label="Lane"
          name="lane"
          query={query}
          of={[["", "all"], ...lanes.map((lane) => [lane, lane] as const)]}
        />
      )}
      <label>
        Text{" "}
        <input
          type="search"
          value={query.get("text") ?? ""}
          onInput={({ currentTarget }) => changeQuery({ text: currentTarget.value })}
        />
      </label>
      <Bound label="Score from" name="least" query={query} />
      <Bound label="to" name="most" query={query} />
    </search>
  );
}

function About({ about }: { readonly about: SamplesAbout }): JSX.Element {
  const { found, total, invalid, meanScore, cost, compared, malformed, isPartial, share } = about;
  const facts = [
    ...(share === 1
      ? []
      : [
          {
            name: "Being read",
            value: share === null ? "…" : `${Math.floor(100 * share)} %`,
            isWarning: true,
          },
        ]),
    { name: "Found", value: found === total ? count(total) : `${count(found)} of ${count(total)}` },
    { name: "Mean score", value: figure(meanScore) },
    { name: "Invalid", value: count(invalid), isWarning: invalid > 0 },
    ...(cost > 0 ? [{ name: "Cost", value: figure(cost) }] : []),
    ...(malformed > 0
      ? [{ name: "Lines that cannot be read", value: count(malformed), isWarning: true }]
      : []),
    ...(isPartial ? [{ name: "Text search", value: "covers the first GiB", isWarning: true }] : []),
    ...(compared === undefined
      ? []
      : [
          { name: "In both logs", value: count(compared.pairs) },
          {
            name: "Equal scores",
            value: `${count(compared.agreeing)} (${percent(compared.agreeing, compared.pairs)})`,
          },
          {
            name: "Mean here and there",
            value: `${figure(compared.meanHere)} and ${figure(compared.meanThere)}`,
          },
        ]),
  ];
  return (
    <div class="about">
      <Facts facts={facts} />
      <Scores about={about} />
    </div>
  );
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "–" : `${figure((100 * part) / whole)} %`;
}

const bars = [{ label: "samples", colour: 0, isBars: true }];

function Scores({ about }: { readonly about: SamplesAbout }): JSX.Element | null {
  const { histogram } = about;
  const shape = JSON.stringify(histogram);
  const data = useMemo(
    (): [number[], number[]] => [
      histogram.map(({ from, to }) => (from + to) / 2),
      histogram.map((bar) => bar.count),
    ],
    [shape],
  );
  if (histogram.length === 0) return null;
  const text = histogram.map((bar) => `${barName(bar)}: ${count(bar.count)}`).join(", ");
  return (
    <Chart
      label={`Samples by score. ${text}. A click chooses the scores of a bar.`}
      series={bars}
      data={data}
      height={110}
      onPick={(at) => {
        const bar = histogram[at];
        if (bar !== undefined) changeQuery({ least: String(bar.from), most: String(bar.to) });
      }}
    />
  );
}

function barName({ from, to }: { readonly from: number; readonly to: number }): string {
  return from === to ? figure(from) : `${figure(from)} to ${figure(to)}`;
}

interface ListProps {
  readonly samples: Samples;
  readonly about: SamplesAbout;
  readonly query: URLSearchParams;
  readonly id: string | undefined;
}

interface SampleColumn {
  readonly title: string;
  readonly sort?: string;
  readonly style: string;
  readonly show: (row: ShownSample) => string;
}

function columnsOf(hasOther: boolean, hasCost: boolean): readonly SampleColumn[] {
  return [
    { title: "Sample", sort: "index", style: "short", show: ({ index }) => count(index) },
    {
      title: "Score",
      sort: "score",
      style: "short",
      show: ({ score, code }) => scoreText(score, code),
    },
    ...(hasOther
      ? [
          {
            title: "Beside",
            sort: "other",
            style: "short",
            show: ({ other }: ShownSample) =>
              other === undefined || other === null ? "–" : scoreText(other.score, other.code),
          },
        ]
      : []),
    { title: "Latency", sort: "latencyMs", style: "short", show: (row) => duration(row.latencyMs) },
    ...(hasOther
      ? []
      : [
          {
            title: "Tries",
            sort: "attempts",
            style: "narrow",
            show: ({ attempts }: ShownSample) => count(attempts),
          },
        ]),
    ...(hasCost
      ? [
          {
            title: "Cost",
            sort: "cost",
            style: "short",
            show: ({ cost }: ShownSample) => figure(cost),
          },
        ]
      : []),
    { title: "Response", style: "long", show: ({ response }) => response ?? "–" },
  ];
}

function scoreText(score: number | null, code: string | null): string {
  return score === null ? (code ?? "invalid") : figure(score);
}

function List({ samples, about, query, id }: ListProps): JSX.Element {
  const columns = columnsOf(query.get("other") !== null, about.cost > 0);
  const [at, setAt] = useState<number>();
  const row = at === undefined ? undefined : samples.rowAt(at);
  const chosen = row !== undefined && String(row.index) === id ? at : undefined;
  const choose = (to: number): void => {
    setAt(to);
    const wanted = samples.rowAt(to);
    if (wanted !== undefined) chooseId(String(wanted.index));
  };
  // A row that was on its way when it was chosen.
  useEffect(() => {
    if (at !== undefined && row !== undefined && chosen === undefined) chooseId(String(row.index));
  }, [at, row]);
  return (
    <VirtualRows
      label="Samples"
      count={about.found}
      chosen={chosen}
      onChoose={choose}
      onShow={samples.show}
      head={columns.map((column) => (
        <SampleHead key={column.title} column={column} query={query} />
      ))}
      cells={(place) => {
        const shown = samples.rowAt(place);
        return columns.map(({ title, style, show }) => (
          <span key={title} role="gridcell" class={style}>
            {shown === undefined ? "…" : show(shown)}
          </span>
        ));
      }}
    />
  );
}

function SampleHead({
  column,
  query,
}: {
  readonly column: SampleColumn;
  readonly query: URLSearchParams;
}): JSX.Element {
  const { title, sort, style } = column;
  if (sort === undefined) {
    return (
      <span role="columnheader" class={style}>
        {title}
      </span>
    );
  }
  const isOwn = (query.get("sort") ?? "index") === sort;
  const isDescending = query.get("order") === "descending";
  const direction = isDescending ? "descending" : "ascending";
  const next = isOwn && !isDescending ? "descending" : undefined;
  return (
    <span role="columnheader" class={style} aria-sort={isOwn ? direction : "none"}>
      <button type="button" class="sort" onClick={() => changeQuery({ sort, order: next })}>
        {title}
        <span aria-hidden="true">{isOwn ? (isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </span>
  );
}
