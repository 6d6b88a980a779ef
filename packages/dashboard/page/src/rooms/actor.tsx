/** One actor: what it is, why it died, its calls, what it wrote, and its end. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ActorAnswer, PlainRow } from "../data/session.ts";
import { cell, count } from "../data/text.ts";
import { send, useLive } from "../data/views.ts";
import { Logs } from "../parts/logs.tsx";
import { Facts, Panel, Room, Waiting } from "../parts/panel.tsx";
import { State, Table } from "../parts/table.tsx";

interface ActorProps {
  readonly id: string;
  readonly canKill: boolean;
}

export function ActorRoom({ id, canKill }: ActorProps): JSX.Element {
  const { data, problem } = useLive<ActorAnswer>("actor", `id=${encodeURIComponent(id)}`);
  return (
    <Room title={`Actor ${id}`} problem={problem}>
      {data === undefined ? <Waiting /> : <Actor data={data} canKill={canKill} />}
    </Room>
  );
}

function Actor({
  data,
  canKill,
}: {
  readonly data: ActorAnswer;
  readonly canKill: boolean;
}): JSX.Element {
  const { actor, calls, logs } = data;
  const isDead = actor["state"] === "DEAD";
  return (
    <>
      <Facts facts={factsOf(actor)} />
      {canKill && !isDead ? <Kill actor={actor} /> : null}
      <Panel title="Calls" note={count(calls.total)}>
        <Table
          label="Calls"
          empty="No call waits or runs. Ended calls are kept with init({ taskEvents: true })."
          keyOf={(row) => String(row["taskId"])}
          columns={[
            { key: "taskId", title: "Call" },
            { key: "name", title: "Method" },
            { key: "state", title: "State", show: (row) => <State state={String(row["state"])} /> },
            { key: "errorMessage", title: "Error" },
            { key: "ownerId", title: "Caller" },
          ]}
          rows={calls.rows}
        />
      </Panel>
      <Panel title="Last lines">
        <Logs tail={logs} />
      </Panel>
    </>
  );
}

function factsOf(actor: PlainRow): { name: string; value: JSX.Element | string }[] {
  const shown = [
    ["Class", "className"],
    ["Name", "name"],
    ["Namespace", "rayNamespace"],
    ["Restarts", "numRestarts"],
    ["Calls running", "runningCalls"],
    ["Calls queued", "queuedCalls"],
    ["Calls done", "executedCalls"],
    ["Holds", "requiredResources"],
    ["Worker", "workerId"],
    ["Node", "nodeId"],
    ["Cause of death", "deathCause"],
    ["Waits because", "pendingReason"],
  ] as const;
  const known = shown.filter(([, key]) => actor[key] !== undefined && actor[key] !== "");
  return [
    { name: "State", value: <State state={String(actor["state"])} /> },
    ...known.map(([name, key]) => ({ name, value: cell(actor[key]) })),
  ];
}

function Kill({ actor }: { readonly actor: PlainRow }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<string>();
  const name = `${String(actor["className"])} ${String(actor["actorId"])}`;
  const kill = async (): Promise<void> => {
    try {
      await send("kill", { actorId: actor["actorId"] });
      dialog.current?.close();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <p>
      <button type="button" class="danger" onClick={() => dialog.current?.showModal()}>
        Kill …
      </button>
      <dialog ref={dialog} aria-labelledby="kill-title">
        <h2 id="kill-title">Kill {name}?</h2>
        <p>Its pending calls fail with ActorDiedError. It is not restarted.</p>
        {problem === undefined ? null : <p class="problem">{problem}</p>}
        <div class="bar">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" class="danger" onClick={() => void kill()}>
            Kill it
          </button>
        </div>
      </dialog>
    </p>
  );
}
