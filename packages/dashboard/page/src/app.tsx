/** The rooms that this server has, a way to each, and the one that is shown. */
import type { JSX } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { useAddress } from "./data/address.ts";
import type { Address } from "./data/address.ts";
import { ask } from "./data/views.ts";
import { Room, Waiting } from "./parts/panel.tsx";
import { ActorRoom } from "./rooms/actor.tsx";
import { ListingRoom, listings } from "./rooms/listing.tsx";
import { LoopsRoom } from "./rooms/loops.tsx";
import { OverviewRoom } from "./rooms/overview.tsx";
import { SamplesRoom } from "./rooms/samples.tsx";
import { TrainingRoom } from "./rooms/training.tsx";

interface Rooms {
  readonly rooms: readonly string[];
  readonly canKill: boolean;
}

const titles: Readonly<Record<string, string>> = {
  overview: "Overview",
  ...Object.fromEntries(Object.entries(listings).map(([name, { title }]) => [name, title])),
  loops: "Reward loop",
  samples: "Samples",
  runs: "Training",
};

export function App(): JSX.Element {
  const [known, setKnown] = useState<Rooms>();
  const [problem, setProblem] = useState<string>();
  const address = useAddress();
  useEffect(() => {
    ask<Rooms>("rooms").then(setKnown, (error: Error) => setProblem(error.message));
  }, []);
  if (known === undefined) {
    return (
      <Room title="rayling" problem={problem}>
        <Waiting />
      </Room>
    );
  }
  const links = Object.keys(titles).filter((name) => known.rooms.includes(name));
  const room = address.room === "" ? (links[0] ?? "") : address.room;
  return (
    <>
      <nav aria-label="Rooms">
        <strong>rayling</strong>
        {links.map((name) => (
          <a key={name} href={`#/${name}`} aria-current={isIn(room, name) ? "page" : undefined}>
            {titles[name]}
          </a>
        ))}
      </nav>
      <Shown key={room} room={room} address={address} known={known} />
    </>
  );
}

function isIn(room: string, name: string): boolean {
  return room === name || (room === "actor" && name === "actors");
}

interface ShownProps {
  readonly room: string;
  readonly address: Address;
  readonly known: Rooms;
}

function Shown({ room, address, known }: ShownProps): JSX.Element {
  const { id, query } = address;
  const listing = listings[room];
  const [broken] = useErrorBoundary();
  if (broken !== undefined) {
    return (
      <Room title={titles[room] ?? room} problem={`This room cannot be shown: ${String(broken)}`}>
        <p>The others can. A reload tries it again.</p>
      </Room>
    );
  }
  if (room === "overview") return <OverviewRoom />;
  if (room === "actor" && id !== undefined) {
    return <ActorRoom key={id} id={id} canKill={known.canKill} />;
  }
  if (room === "loops") return <LoopsRoom />;
  if (room === "runs") return <TrainingRoom query={query} />;
  if (room === "samples") return <SamplesRoom address={address} />;
  if (listing !== undefined) {
    return <ListingRoom key={room} what={room} listing={listing} query={query} />;
  }
  return (
    <Room title="Not here">
      <p>This page has no room of that name.</p>
    </Room>
  );
}
