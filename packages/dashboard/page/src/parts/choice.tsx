/** A choice, and a bound, that the address keeps. */
import type { JSX } from "preact";
import { changeQuery } from "../data/address.ts";

interface ChoiceProps {
  readonly label: string;
  /** The key in the address. */
  readonly name: string;
  readonly query: URLSearchParams;
  readonly of: readonly (readonly [value: string, text: string])[];
  /** What is chosen where the address says nothing. Default: the first. */
  readonly otherwise?: string;
}

export function Choice({ label, name, query, of, otherwise }: ChoiceProps): JSX.Element {
  return (
    <label>
      {label}{" "}
      <select
        value={query.get(name) ?? otherwise ?? of[0]?.[0] ?? ""}
        onChange={({ currentTarget }) => changeQuery({ [name]: currentTarget.value })}
      >
        {of.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A number that may be left out. */
export function Bound({ label, name, query }: Omit<ChoiceProps, "of" | "otherwise">): JSX.Element {
  return (
    <label>
      {label}{" "}
      <input
        class="bound"
        type="number"
        step="any"
        value={query.get(name) ?? ""}
        onInput={({ currentTarget }) => changeQuery({ [name]: currentTarget.value })}
      />
    </label>
  );
}
