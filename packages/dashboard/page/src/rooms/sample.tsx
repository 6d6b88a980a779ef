/** One sample: what was asked and answered, what it got and why, beside another log's outcome. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../data/samples.ts";
import type { SampleAnswer, RewardRecord, WholeSample } from "../data/samples.ts";
import { cell, count, duration, figure } from "../data/text.ts";
import { ask } from "../data/views.ts";
import { Facts, Waiting } from "../parts/panel.tsx";
import { Table } from "../parts/table.tsx";

interface SampleProps {
  readonly index: string;
  readonly log: string;
  readonly other: string | undefined;
  /** Names of both logs. */
  readonly names: readonly [string, string];
}

export function Sample({ index, log, other, names }: SampleProps): JSX.Element {
  const [state, setState] = useState<{ answer?: SampleAnswer; problem?: string }>({});
  const query = new URLSearchParams({ index, log, ...(other === undefined ? {} : { other }) });
  const asked = query.toString();
  useEffect(() => {
    let isCurrent = true;
    ask<SampleAnswer>("sample", asked).then(
      (answer) => isCurrent && setState({ answer }),
      (error: unknown) => isCurrent && setState({ problem: messageOf(error) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [asked]);
  const { answer, problem } = state;
  if (problem !== undefined) return <p class="problem">{problem}</p>;
  if (answer === undefined) return <Waiting />;
  const { record } = answer;
  return (
    <article class="sample" aria-label={`Sample ${record.index}`} tabIndex={0}>
      <h2>Sample {count(record.index)}</h2>
      {answer.other === undefined ? (
        <Outcome whole={answer} title={undefined} />
      ) : (
        <div class="pair">
          <Outcome whole={answer} title={names[0]} />
          <Outcome whole={answer.other} title={names[1]} />
        </div>
      )}
      <Texts record={record} />
    </article>
  );
}

function Outcome({
  whole: { record, parts },
  title,
}: {
  readonly whole: WholeSample;
  readonly title: string | undefined;
}): JSX.Element {
  const { extra, error, errorClass } = record;
  return (
    <section>
      {title === undefined ? null : <h3>{title}</h3>}
      <Facts facts={factsOf(record)} />
      <p class="dim">{placeText(record)}</p>
      {error ? (
        <p class="problem">
          {error.code}
          {errorClass ? ` (${errorClass})` : ""}: {error.message}
        </p>
      ) : null}
      {parts.length === 0 ? null : (
        <Table
          label="Parts"
          keyOf={(row) => String(row["component"])}
          columns={[
            { key: "component", title: "Part" },
            { key: "score", title: "Score", isNumber: true },
            { key: "said", title: "Says" },
          ]}
          rows={parts.map((part) => ({ ...part, said: part.error?.message ?? cell(part.extra) }))}
        />
      )}
      {Object.entries(extra).map(([name, value]) => (
        <Text key={name} name={name} text={typeof value === "string" ? value : cell(value)} />
      ))}
    </section>
  );
}

function factsOf(record: RewardRecord): { name: string; value: ComponentChildren }[] {
  const { score, cost, usage, answeredBy } = record;
  return [
    { name: "Score", value: score === null ? "none" : figure(score) },
    { name: "Latency", value: duration(record.latencyMs) },
    { name: "Waited", value: duration(record.waitedMs) },
    { name: "Tries", value: count(record.attempts) },
    ...(typeof cost !== "number" ? [] : [{ name: "Cost", value: figure(cost) }]),
    ...(usage ? [{ name: "Tokens", value: count(usage["totalTokens"]) }] : []),
    ...(record.cached ? [{ name: "From the cache", value: "yes" }] : []),
    ...(answeredBy ? [{ name: "Answered by", value: answeredBy }] : []),
  ];
}

function placeText({ group, lane, version, at }: RewardRecord): string {
  const ofGroup = group ? `group ${group}, ` : "";
  const ofLane = lane ? `lane ${lane}, ` : "";
  return `${ofGroup}${ofLane}version ${version.slice(0, 12)}, ${at}`;
}

function Texts({ record }: { readonly record: RewardRecord }): JSX.Element {
  const { prompt, response, groundTruth, textsDropped } = record;
  if (prompt === undefined && response === undefined) {
    return <p class="dim">{textsDropped ?? "The log keeps no prompts and responses."}</p>;
  }
  return (
    <section>
      {messagesOf(prompt).map(({ role, content }, at) => (
        <Text key={at} name={role} text={content} />
      ))}
      <Text name="response" text={typeof response === "string" ? response : cell(response)} />
      <Text
        name="ground truth"
        text={typeof groundTruth === "string" ? groundTruth : cell(groundTruth)}
      />
    </section>
  );
}

/** Another program may have written anything there. */
function messagesOf(prompt: unknown): { role: string; content: string }[] {
  if (prompt === null || prompt === undefined) return [];
  const messages: readonly unknown[] = Array.isArray(prompt) ? prompt : [{ content: prompt }];
  return messages.map((message) => {
    const { role, content }: { role?: unknown; content?: unknown } = Object(message);
    return { role: cell(role ?? "prompt"), content: cell(content) };
  });
}

function Text({ name, text }: { readonly name: string; readonly text: string }): JSX.Element {
  return (
    <div class="text">
      <h3>{name}</h3>
      <pre>{text}</pre>
    </div>
  );
}
