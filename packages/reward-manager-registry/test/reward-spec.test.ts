/** PATH[:name] as pure text. */

import { describe, expect, test } from "vitest";
import { parseRewardSpec } from "@rayling/reward-manager-registry";

describe("parseRewardSpec", () => {
  const table: [string, string, string?][] = [
    ["reward.ts", "reward.ts"],
    ["./reward.ts", "./reward.ts"],
    ["examples/x.ts:fn", "examples/x.ts", "fn"],
    ["x.ts:compute_score", "x.ts", "compute_score"],
    ["x.ts:$score2", "x.ts", "$score2"],
    ["x.ts:default", "x.ts", "default"],
    ["x.ts:größe", "x.ts", "größe"],
    ["/abs/x.ts:fn", "/abs/x.ts", "fn"],
    ["/data/run:2/x.ts", "/data/run:2/x.ts"],
    ["/data/run:2/x.ts:fn", "/data/run:2/x.ts", "fn"],
    ["file:///abs/x.ts", "file:///abs/x.ts"],
    ["file:///abs/x.ts:fn", "file:///abs/x.ts", "fn"],
    ["file:///C:/x.ts", "file:///C:/x.ts"],
    ["file:///C:/x.ts:fn", "file:///C:/x.ts", "fn"],
    ["pkg:name", "pkg:name"],
    ["pkg:name:fn", "pkg:name", "fn"],
    ["pkg:name/sub:fn", "pkg:name/sub", "fn"],
    ["pkg:@scope/name", "pkg:@scope/name"],
    ["pkg:@scope/name:fn", "pkg:@scope/name", "fn"],
    ["pkg://name", "pkg://name"],
    ["pkg://name:fn", "pkg://name", "fn"],
    ["C:\\work\\x.ts", "C:\\work\\x.ts"],
    ["C:\\work\\x.ts:fn", "C:\\work\\x.ts", "fn"],
    ["C:/work/x.ts:fn", "C:/work/x.ts", "fn"],
    ["C:x.ts:fn", "C:x.ts", "fn"],
    ["C:x.ts", "C:x.ts"],
  ];
  test.each(table)("%s", (text, path, name) => {
    expect(parseRewardSpec(text)).toStrictEqual(name === undefined ? { path } : { path, name });
  });

  test.each(["", "  ", ":fn", "x.ts:", "x.ts:not-a-name", "x.ts:1st", "x.ts:a b", "x.ts:a:"])(
    "refuses %j",
    (text) => {
      expect(() => parseRewardSpec(text)).toThrow(
        expect.objectContaining({ code: "INVALID_REWARD_SPEC", spec: text }),
      );
    },
  );
});
