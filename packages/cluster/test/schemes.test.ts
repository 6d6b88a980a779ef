/** Nodes of several kinds in one session: each address goes to who knows its scheme. */

import { provideNodes } from "@rayling/core/cluster";
import * as ray from "@rayling/core";
import { expect, onTestFinished, test } from "vitest";

let schemes = 0;

test("addresses are joined by who was provided for their scheme", async () => {
  onTestFinished(() => ray.shutdown());
  // The first who was provided counts.
  const scheme = `proof${++schemes}`;
  const asked: string[] = [];
  provideNodes(
    async () => async (address) => {
      asked.push(address);
      return {
        nodeName: `${address}#${asked.length}`,
        machine: { hostname: "elsewhere", address: "192.0.2.1" },
        parallelism: 1,
        resources: { proof: 1 },
        labels: {},
        launch: () => {
          throw new Error("nothing runs there");
        },
        lost: new Promise<ray.DeathCause>(() => undefined),
        outOfReach: async () => undefined,
        close: async () => undefined,
      };
    },
    scheme,
  );
  const [left, right] = [`${scheme}://left`, `${scheme.toUpperCase()}://right`] as const;
  await ray.init({ prewarm: 0, nodes: [left, right] });
  const names = (await ray.nodes()).map(({ nodeName }) => nodeName);
  expect(names.slice(1)).toEqual([`${left}#1`, `${right}#2`]);
  expect(asked).toEqual([left, right]);
});
