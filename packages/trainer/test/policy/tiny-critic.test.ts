/** The tiny critic: values of the tokens before they are written, and that it learns them. */

import { asTensor } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import type { TrainerInputError } from "@rayling/trainer";
import { TinyCritic, TinyPolicy } from "@rayling/trainer/tiny";
import { expect, test } from "vitest";
import { bitsOf, small, textRows } from "./tiny-rows.ts";

const rows = textRows(["ab=", "ba"], ["cd=", "dcc"], ["a=", "a"]);
const wanted = [1, 0.5, 0, -1, 0.25, 0.75, 0.1, 0, 0];
const isThere = [1, 1, 0, 1, 1, 1, 1, 0, 0];

const matrix = (values: readonly number[]): Tensor =>
  asTensor(Float32Array.from(values), [3, values.length / 3]);

/** d loss / d value of half the squared error. */
const slopesOf = ({ data }: Tensor): Tensor =>
  matrix(wanted.map((value, i) => isThere[i]! * (data[i]! - value)));

test("begins with 0 everywhere, and learns the values that it is told", async () => {
  const critic = new TinyCritic({ ...small, optim: { lr: 1e-2, weightDecay: 0 } });
  const first = await critic.values(rows);
  expect(first.shape).toEqual([3, 3]);
  expect([...first.data]).toEqual(wanted.map(() => 0));
  for (let step = 0; step < 150; step++) {
    await critic.update({ ...rows, gradValues: slopesOf(await critic.values(rows)) });
  }
  const { data } = await critic.values(rows);
  wanted.forEach((value, i) => expect(data[i]).toBeCloseTo(isThere[i]! * value, 1));
});

test("a value knows the tokens before its own, and none from there on", async () => {
  const critic = new TinyCritic({ ...small, optim: { lr: 1e-2 } });
  for (let step = 0; step < 5; step++) {
    await critic.update({ ...rows, gradValues: slopesOf(await critic.values(rows)) });
  }
  const { data } = await critic.values(textRows(["ab=", "bad"], ["ab=", "bcc"], ["ab=", "aad"]));
  expect(data[0]).toBeCloseTo(data[3]!, 6);
  expect(data[0]).toBeCloseTo(data[6]!, 6);
  expect(data[1]).toBeCloseTo(data[4]!, 6);
  expect(data[1]).not.toBeCloseTo(data[7]!, 4);
  expect(data[2]).not.toBeCloseTo(data[5]!, 4);
});

test("goes on bit by bit from its state", async () => {
  const goOn = async (critic: TinyCritic): Promise<string> => {
    await critic.update({ ...rows, gradValues: slopesOf(await critic.values(rows)) });
    return bitsOf(await critic.state());
  };
  const critic = new TinyCritic(small);
  await goOn(critic);
  const other = new TinyCritic({ ...small, seed: 99 });
  await other.setState(structuredClone(await critic.state()));
  expect(await goOn(other)).toBe(await goOn(critic));
});

test("an update without anything to learn leaves weights and moments as they are", async () => {
  const critic = new TinyCritic({ ...small, optim: { lr: 1e-2 } });
  await critic.update({ ...rows, gradValues: slopesOf(await critic.values(rows)) });
  const before = bitsOf(await critic.state());
  const gradValues = matrix(wanted.map(() => 0));
  await critic.update({ ...rows, gradValues, stepsSchedule: false, learns: false });
  expect(bitsOf(await critic.state())).toBe(before);
});

test("bad input is named, and nothing has changed", async () => {
  const critic = new TinyCritic(small);
  const before = bitsOf(await critic.state());
  const inputOf = (action: Promise<unknown>): Promise<unknown> =>
    action.then(
      () => "it was taken",
      (error: unknown) => (error as TrainerInputError).input,
    );
  expect(await inputOf(critic.update({ ...rows, gradValues: matrix([1, 1, 1]) }))).toBe(
    "gradValues",
  );
  const infinite = matrix(wanted.map(() => Infinity));
  expect(await inputOf(critic.update({ ...rows, gradValues: infinite }))).toBe("gradValues");
  expect(await inputOf(critic.setState(await new TinyPolicy(small).state()))).toBe("weights");
  const others = await new TinyCritic({ ...small, heads: 4 }).state();
  expect(await inputOf(critic.setState(others))).toBe("heads");
  expect(bitsOf(await critic.state())).toBe(before);
});
