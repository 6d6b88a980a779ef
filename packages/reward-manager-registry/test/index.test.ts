/** The public names of the package. A change here is a change for users. */

import { expect, test } from "vitest";
import * as publicNames from "@rayling/reward-manager-registry";

test("public names", () => {
  expect(Object.keys(publicNames).toSorted()).toMatchInlineSnapshot(`
    [
      "InvalidRewardManagerError",
      "InvalidRewardSpecError",
      "InvalidSampleError",
      "InvalidScoreError",
      "InvalidScorerOptionError",
      "MissingTokenizerError",
      "NaiveRewardManager",
      "RewardExportNotFoundError",
      "RewardExportTypeError",
      "RewardManagerConflictError",
      "RewardModuleImportError",
      "RewardModuleNotFoundError",
      "RewardNotSupportedError",
      "UnknownDataSourceError",
      "UnknownRewardManagerError",
      "createDefaultRegistry",
      "createRegistry",
      "defaultComputeScore",
      "extractGsm8kSolution",
      "loadComputeScore",
      "loadRewardManagerClass",
      "parseRewardSpec",
      "routeDataSource",
      "scoreGsm8k",
      "scoreSample",
      "withRewardKwargs",
    ]
  `);
});
