/** Runs as a whole, beside each other: figures, rewards, command, commit, settings. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { ListedRun, TrainingAnswer } from "../../../../src/training/answers.ts";
import { count, duration } from "../../data/text.ts";
import { Chart } from "../../parts/chart.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Table } from "../../parts/table.tsx";

type About = TrainingAnswer["about"][number];

interface AboutProps {
  readonly about: readonly About[];
  readonly chosen: readonly ListedRun[];
}

interface NamedProps extends AboutProps {
  readonly label: string;
  readonly valuesOf: (about: About) => Readonly<Record<string, string>>;
  /** Whether what all runs have alike is left out. */
  readonly isOfDifferences?: boolean;
}

/** A row for each name, a column for each run. */
function Named({ about, chosen, label, valuesOf, isOfDifferences }: NamedProps): JSX.Element {
  const columns = about.map((one) => [String(one.run), valuesOf(one)] as const);
  const names = [...new Set(columns.flatMap(([, values]) => Object.keys(values)))];
  const rows = names
    .filter((name) => {
      const values = new Set(columns.map(([, of]) => of[name]));
      return isOfDifferences !== true || values.size > 1;
    })
    .map((name) => ({
      name,
      ...Object.fromEntries(columns.map(([run, values]) => [run, values[name]])),
    }));
  return (
    <Table
      label={label}
      empty={isOfDifferences === true ? "They are alike." : "Nothing is known of it."}
      keyOf={(row) => String(row["name"])}
      columns={[
        { key: "name", title: "Run" },
        ...about.map(({ run }) => ({
          key: String(run),
          title: chosen.find((one) => one.run === run)?.name ?? "",
        })),
      ]}
      rows={rows}
    />
  );
}

export function Figures(props: AboutProps): JSX.Element {
  return (
    <Panel title="In figures">
      <Named {...props} label="Figures" valuesOf={({ figures }) => Object.fromEntries(figures)} />
    </Panel>
  );
}

/** Warnings of the trainings, where there are any. */
export function Warnings({ about, chosen }: AboutProps): JSX.Element | null {
  const rows = about.flatMap(({ run, warnings }) => {
    const name = chosen.find((one) => one.run === run)?.name;
    return warnings.map((warning, at) => ({ key: `${run} ${at}`, name, ...warning }));
  });
  if (rows.length === 0) return null;
  return (
    <Panel title="Warnings">
      <Table
        label="Warnings"
        keyOf={(row) => String(row["key"])}
        columns={[
          { key: "name", title: "Run" },
          { key: "step", title: "Step", isNumber: true },
          { key: "message", title: "Warning" },
        ]}
        rows={rows}
      />
    </Panel>
  );
}

export function Settings(props: AboutProps): JSX.Element {
  const isOne = props.about.length < 2;
  const settings = ({ settings: all }: About): Readonly<Record<string, string>> => all;
  return (
    <Panel title="Command, commit and settings">
      <Named {...props} label="Commands" valuesOf={({ facts }) => Object.fromEntries(facts)} />
      {isOne ? null : (
        <>
          <h3>Settings that differ</h3>
          <Named {...props} label="Settings that differ" valuesOf={settings} isOfDifferences />
        </>
      )}
      <details>
        <summary>All settings</summary>
        <Named {...props} label="Settings" valuesOf={settings} />
      </details>
    </Panel>
  );
}

export function Rewards({ about, chosen }: AboutProps): JSX.Element {
  return (
    <div class="columns">
      {about.map((one) => (
        <RunRewards
          key={one.run}
          about={one}
          name={about.length < 2 ? undefined : chosen.find(({ run }) => run === one.run)?.name}
        />
      ))}
    </div>
  );
}

interface RunRewardsProps {
  readonly about: About;
  /** Undefined where there is one. */
  readonly name: string | undefined;
}

function RunRewards({ about, name }: RunRewardsProps): JSX.Element {
  const { latency, failures } = about;
  const of = name === undefined ? "" : ` of ${name}`;
  return (
    <Panel title="Rewards" note={name}>
      {latency.bars.length === 0 ? (
        <p class="dim">No reward was scored.</p>
      ) : (
        <>
          <Latency bars={latency.bars} />
          <Table
            label={`Latency${of}`}
            keyOf={(row) => String(row["share"])}
            columns={[
              { key: "share", title: "Share of the rewards", isNumber: true },
              { key: "within", title: "Within", isNumber: true },
            ]}
            rows={latency.within.map(([share, ms]) => ({
              share: share === 1 ? "all" : `${count(100 * share)} %`,
              within: duration(ms),
            }))}
          />
        </>
      )}
      <h3>Failures by class</h3>
      <Table
        label={`Failures${of}`}
        empty="None."
        keyOf={(row) => `${String(row["class"])} ${String(row["code"])}`}
        columns={[
          { key: "count", title: "Count", isNumber: true },
          { key: "class", title: "Class" },
          { key: "code", title: "Code" },
          { key: "example", title: "For example" },
        ]}
        rows={failures.map((one) => ({ ...one }))}
      />
    </Panel>
  );
}

const latencySeries = [{ label: "rewards", colour: 2, isBars: true }];

function Latency({ bars }: Pick<About["latency"], "bars">): JSX.Element {
  const shape = JSON.stringify(bars);
  const [data, names] = useMemo(() => {
    const counts = bars.map(([, , many]) => many);
    return [
      [bars.map((_, at) => at), counts] as [number[], number[]],
      bars.map(([fromMs]) => duration(fromMs)),
    ] as const;
  }, [shape]);
  const text = bars.map(([fromMs, , many]) => `from ${duration(fromMs)}: ${count(many)}`);
  return (
    <Chart
      label={`Rewards by latency. ${text.join(", ")}`}
      series={latencySeries}
      data={data}
      names={names}
    />
  );
}
