/** Nodes of several kinds in one session: each address goes to who knows its scheme. */

import { provideNodes } from "@rayling/core/cluster";
import * as ray from "@rayling/core";
import { expect, onTestFinished, test } from "vitest";

let schemes = 0;

test("addresses are joined by who was provided for their scheme, and a lost one is asked for again", async () => {
  onTestFinished(() => ray.shutdown());
  // The first who was provided counts.
  const scheme = `proof${++schemes}`;
  const asked: string[] = [];
  const lose: (() => void)[] = [];
  provideNodes(
    async () => async (address) => {
      asked.push(address);
      const { promise: lost, resolve } = Promise.withResolvers<ray.DeathCause>();
      lose.push(() => resolve({ kind: "unreachable", message: "it was cut off" }));
      return {
        nodeName: `${address}#${asked.length}`,
        machine: { hostname: "elsewhere", address: "192.0.2.1" },
        parallelism: 1,
        resources: { proof: 1 },
        labels: {},
        launch: () => {
          throw new Error("nothing runs there");
        },
        onDrain: () => undefined,
        lost,
        outOfReach: async () => undefined,
        close: async () => undefined,
      };
    },
    scheme,
  );
  const [left, right] = [`${scheme}://left`, `${scheme.toUpperCase()}://right`] as const;
  await ray.init({ prewarm: 0, nodes: [left, right] });
  const names = async (): Promise<string[]> =>
    (await ray.nodes()).filter(({ alive }) => alive).map(({ nodeName }) => nodeName);
  expect((await names()).slice(1)).toEqual([`${left}#1`, `${right}#2`]);
  lose[0]?.();
  await expect.poll(names).toContain(`${left}#3`);
  expect(asked).toEqual([left, right, left]);
});
