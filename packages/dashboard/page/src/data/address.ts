/** The address of the page: `#/room/id?query`, so that a reload and a link show the same. */
import { useEffect, useState } from "preact/hooks";

export interface Address {
  readonly room: string;
  /** The second part, as of one actor. */
  readonly id: string | undefined;
  readonly query: URLSearchParams;
}

export function addressOf(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [room = "", id] = path.split("/");
  const known = id === undefined ? undefined : decodeURIComponent(id);
  return { room, id: known, query: new URLSearchParams(query) };
}

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = (): void => setHash(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return addressOf(hash);
}

/** Names one thing in this room; the query stays. */
export function chooseId(id: string): void {
  const { room, query } = addressOf(location.hash);
  const text = query.toString();
  location.replace(`#/${room}/${encodeURIComponent(id)}${text === "" ? "" : `?${text}`}`);
}

/** Changes the query of this room. Undefined and "" remove a key. */
export function changeQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { room, id, query } = addressOf(location.hash);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  const path = [room, ...(id === undefined ? [] : [encodeURIComponent(id)])].join("/");
  location.replace(`#/${path}${text === "" ? "" : `?${text}`}`);
}
