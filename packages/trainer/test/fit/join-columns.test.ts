/** Rows of batches of different widths as one batch. */

import { DataProto, tensor, toNested } from "@rayling/data-proto";
import { describe, expect, test } from "vitest";
import { joinColumns } from "../../src/samples/join-columns.ts";
import { tensorIn } from "../../src/samples/columns.ts";

function batchOf(prompt: number[], response: number[], scores: number[]): DataProto {
  return DataProto.fromDict({
    tensors: {
      prompts: tensor([prompt], "int32"),
      responses: tensor([response], "int32"),
      attention_mask: tensor([[...prompt, ...response].map(() => 1)], "int32"),
      response_mask: tensor([response.map(() => 1)], "int32"),
      advantages: tensor([scores], "float32"),
    },
    nonTensors: { uid: [`${prompt.length}`] },
  });
}

describe("joinColumns", () => {
  test("prompts are filled up on the left, all else on the right", () => {
    const joined = joinColumns([batchOf([1], [2, 3], [0.5, 1]), batchOf([4, 5], [6], [2])], 9);
    const column = (name: string): unknown => toNested(tensorIn(joined, name));
    expect(column("prompts")).toEqual([
      [9, 1],
      [4, 5],
    ]);
    expect(column("responses")).toEqual([
      [2, 3],
      [6, 9],
    ]);
    expect(column("attention_mask")).toEqual([
      [0, 1, 1, 1],
      [1, 1, 1, 0],
    ]);
    expect(column("response_mask")).toEqual([
      [1, 1],
      [1, 0],
    ]);
    expect(column("advantages")).toEqual([
      [0.5, 1],
      [2, 0],
    ]);
    expect(joined.nonTensorBatch).toEqual({ uid: ["1", "2"] });
  });

  test("what one of them lacks is left out", () => {
    const more = batchOf([4, 5], [6], [2]);
    more.batch = { ...more.batch, values: tensor([[1]], "float32") };
    const joined = joinColumns([batchOf([1], [2, 3], [0.5, 1]), more], 0);
    expect(joined.batch?.["values"]).toBeUndefined();
  });
});
