/** Axes have round values around what they show, and plots show what there is. */

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import {
  colourCount,
  figuresTable,
  htmlPage,
  linearTicks,
  linePlot,
  numberText,
  section,
  table,
} from "@rayling/reward-loop/page";

test.each([
  [0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [0.13, 0.92, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [-0.1, 0, [-0.1, -0.08, -0.06, -0.04, -0.02, 0]],
  [3, 3, [1.5, 3, 4.5]],
  [0, 0, [0, 1]],
  [-2, -2, [-3, -2, -1]],
  [1e-6, 5e-6, [1e-6, 2e-6, 3e-6, 4e-6, 5e-6]],
])("ticks from %d to %d", (low, high, ticks) => {
  expect(linearTicks(low, high)).toEqual(ticks);
});

test.each([
  [0, "0"],
  [0.25, "0.25"],
  [1500, "1,500"],
  [-12.5, "-12.5"],
  [2e-6, "2e-6"],
  [1.25e-5, "1.25e-5"],
  [12_000_000, "1.2e7"],
])("%d is written as %s", (value, text) => {
  expect(numberText(value)).toBe(text);
});

const plot = { title: "T", xLabel: "step", yLabel: "s" };
const pointsIn = (svg: string): number[][] =>
  [...svg.matchAll(/<polyline [^>]*points="([^"]*)"/g)].map(([, points = ""]) =>
    points.split(" ").map((point) => Number(point.split(",")[1])),
  );

test("a curve joins the points that have a value; one without any is no plot", () => {
  const points = [1, null, 3, NaN, 2].map((value, step) => [step, value] as const);
  expect(pointsIn(linePlot({ ...plot, curves: [{ name: "a", points }] }))).toEqual([
    [130.7, 8, 69.3],
  ]);
  expect(linePlot({ ...plot, curves: [{ name: "a", points: [[1, null]] }] })).toBe("");
  expect(linePlot({ ...plot, curves: [] })).toBe("");
});

test("of many points the peaks stay", () => {
  const points = Array.from(
    { length: 10_000 },
    (_, step) => [step, step === 7777 ? 5 : 1] as const,
  );
  const [ys = []] = pointsIn(linePlot({ ...plot, curves: [{ name: "a", points }] }));
  expect(ys.length).toBeLessThanOrEqual(400);
  expect(new Set(ys).size).toBe(2);
  expect(ys.filter((y) => y === Math.min(...ys))).toHaveLength(1);
});

test("curves beyond the colours are left out, and the title says so", () => {
  const curves = Array.from({ length: colourCount + 3 }, (_, index) => ({
    name: `curve ${index}`,
    points: [[0, index] as const],
  }));
  const svg = linePlot({ ...plot, curves });
  expect(pointsIn(svg)).toHaveLength(colourCount);
  expect(svg).toContain("T (without 3 more)");
});

const name = `<img src=x onerror="alert(1)" title='&amp;'>`;

/** With text of others in every place that takes text. */
const hostilePage = (): string =>
  htmlPage({
    title: name,
    subtitle: name,
    sections: [
      section(name, table([name], [[name]])),
      figuresTable([[name, name]]),
      linePlot({
        title: name,
        xLabel: name,
        yLabel: name,
        xText: () => name,
        curves: [{ name, points: [[0, 1]] }],
      }),
    ],
  });

test("text of others is no markup anywhere", () => {
  const page = hostilePage();
  expect(page).not.toContain("<img");
  expect(page).not.toContain(`onerror="`);
  expect(page).not.toContain("title='");
  expect(
    page.split("&lt;img src=x onerror=&quot;alert(1)&quot; title=&#39;&amp;amp;&#39;&gt;").length,
  ).toBeGreaterThan(15);
});

test("a page lets nothing in but its own style sheet, which its policy names by its hash", () => {
  const page = hostilePage();
  const [, policy = ""] =
    /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(page) ?? [];
  const rules = Object.fromEntries(
    policy.split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]),
  );
  const [, style = "", ...more] = page.split(/<style>([^]*?)<\/style>/);
  expect(more).toHaveLength(1);
  expect(rules).toEqual({
    "default-src": "'none'",
    "style-src": `'sha256-${createHash("sha256").update(style).digest("base64")}'`,
    "base-uri": "'none'",
    "form-action": "'none'",
  });
  // It holds for what stands behind it.
  expect(page.indexOf(policy)).toBeLessThan(page.indexOf("<title>"));
  const tags = page.replaceAll(/"[^"]*"/g, "").match(/<[a-z][^>]*>/gi) ?? [];
  expect(tags.length).toBeGreaterThan(30);
  for (const tag of tags) {
    expect(tag).not.toMatch(/^<(?:script|link|img|iframe|object|embed|form|base|a)\b/i);
    expect(tag).not.toMatch(/\s(?:style|on[a-z]+|href|src|srcdoc|action)\s*=/i);
  }
});
