/** One run by itself: the phases of its steps over its rewards in flight, and its validations. */
import type { JSX } from "preact";
import type { DetailsAnswer, ListedRun } from "../../../../src/training/answers.ts";
import { report } from "../../data/report.ts";
import { count, figure } from "../../data/text.ts";
import { Bound, Choice } from "../../parts/choice.tsx";
import { Gantt, secondsText } from "../../parts/gantt.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Table } from "../../parts/table.tsx";

interface DetailsProps {
  readonly details: DetailsAnswer;
  readonly chosen: readonly ListedRun[];
  readonly query: URLSearchParams;
}

export function Details({ details, chosen, query }: DetailsProps): JSX.Element {
  const runs = chosen.map(({ run, name }) => [String(run), name] as const);
  return (
    <section aria-label="One run">
      {runs.length < 2 ? null : (
        <div class="bar">
          <Choice
            label="Steps and answers of"
            name="of"
            query={query}
            of={runs}
            otherwise={String(details.run)}
          />
        </div>
      )}
      <Phases details={details} query={query} />
      <Generations details={details} query={query} />
    </section>
  );
}

const whichSteps = [
  ["newest", "the newest"],
  ["all", "of the whole run"],
] as const;

/** What is shown of the steps where the address says nothing: live, the newest. */
export const usualSteps: "newest" | "all" = report === undefined ? "newest" : "all";

function Phases({ details, query }: Omit<DetailsProps, "chosen">): JSX.Element {
  const { total, rows } = details.phases;
  return (
    <Panel
      title="Phases of each step"
      note={total === 0 ? undefined : `${count(rows.length)} of ${count(total)} steps`}
    >
      <search class="bar">
        <Choice label="Steps" name="steps" query={query} of={whichSteps} otherwise={usualSteps} />
        <Bound label="from" name="from" query={query} />
        <Bound label="to" name="to" query={query} />
      </search>
      {rows.length === 0 ? (
        <p class="dim">No phases were reported.</p>
      ) : (
        <>
          <Gantt rows={rows} />
          <Steps details={details} />
        </>
      )}
    </Panel>
  );
}

function Steps({ details }: Pick<DetailsProps, "details">): JSX.Element {
  const rows = details.phases.rows.map((row) => ({
    step: row.step,
    took: secondsText(row.seconds),
    waited: secondsText(row.exposedWaitSeconds),
    overlap: figure(row.overlap),
    staleness: figure(row.staleness),
    inFlight: row.inFlight === null ? "–" : count(Math.max(...row.inFlight.counts)),
  }));
  return (
    <details>
      <summary>Figures of these steps</summary>
      <Table
        label="Steps"
        keyOf={(row) => String(row["step"])}
        columns={[
          { key: "step", title: "Step", isNumber: true },
          { key: "took", title: "Took", isNumber: true },
          { key: "waited", title: "Waited for rewards", isNumber: true },
          { key: "overlap", title: "Overlap", isNumber: true },
          { key: "staleness", title: "Staleness", isNumber: true },
          { key: "inFlight", title: "Most rewards in flight", isNumber: true },
        ]}
        rows={rows}
      />
    </details>
  );
}

function Generations({ details, query }: Omit<DetailsProps, "chosen">): JSX.Element {
  const { steps, shown } = details.generations;
  return (
    <Panel title="Answers of a validation">
      {shown === null ? (
        <p class="dim">
          No answers were kept (trainer.log_val_generations says how many of a validation are).
        </p>
      ) : (
        <>
          <div class="bar">
            <Choice
              label="After step"
              name="validation"
              query={query}
              of={steps.map((step) => [String(step), String(step)] as const)}
              otherwise={String(shown.step)}
            />
          </div>
          <Table
            label="Answers"
            keyOf={(row) => String(row["at"])}
            columns={[
              { key: "score", title: "Score", isNumber: true },
              { key: "input", title: "Prompt" },
              { key: "output", title: "Answer" },
            ]}
            rows={shown.answers.map(({ score, input, output }, at) => {
              return { at, score: score === null ? "none" : figure(score), input, output };
            })}
          />
        </>
      )}
    </Panel>
  );
}
