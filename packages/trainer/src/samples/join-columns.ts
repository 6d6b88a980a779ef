/**
 * Rows of several batches as one: their widths differ, because each batch is as wide as its longest
 * row.
 */

import { concatRows, DataProto, zeros } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { tensorIn } from "./columns.ts";

/**
 * Columns that all of them have: prompts filled up on the left, what is [rows, tokens of the
 * response] on the right; columns of values as they are.
 */
export function joinColumns(parts: readonly DataProto[], padTokenId: number): DataProto {
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first ?? new DataProto();
  const promptWidth = widest(parts, "prompts");
  const width = widest(parts, "responses");
  const common = Object.keys(first.batch ?? {}).filter((name) =>
    parts.every(({ batch }) => batch?.[name] !== undefined),
  );
  const joined = (name: string): Tensor =>
    concatRows(
      parts.map((part) => {
        const tensor = tensorIn(part, name);
        if (name === "prompts") {
          return placed(tensor, promptWidth, promptWidth - widthOf(tensor), padTokenId);
        }
        if (name !== "attention_mask") {
          return placed(tensor, width, 0, name === "responses" ? padTokenId : 0);
        }
        const start = promptWidth - widthOf(tensorIn(part, "prompts"));
        return placed(tensor, promptWidth + width, start, 0);
      }),
    );
  const values = Object.keys(first.nonTensorBatch);
  return DataProto.fromDict({
    tensors: Object.fromEntries(common.map((name) => [name, joined(name)])),
    nonTensors: Object.fromEntries(
      values.map((name) => [name, parts.flatMap((part) => part.nonTensorBatch[name] ?? [])]),
    ),
  });
}

function widest(parts: readonly DataProto[], name: string): number {
  return Math.max(...parts.map((part) => widthOf(tensorIn(part, name))));
}

function widthOf({ shape }: Tensor): number {
  return shape[1] ?? 0;
}

/** Rows of another width; what was there begins at a column. */
function placed(tensor: Tensor, width: number, start: number, fill: number): Tensor {
  const [rows = 0, own = 0] = tensor.shape;
  if (own === width) return tensor;
  const wider = zeros([rows, width], tensor.dtype);
  wider.data.fill(fill);
  for (let row = 0; row < rows; row++) {
    wider.data.set(tensor.data.subarray(row * own, (row + 1) * own), row * width + start);
  }
  return wider;
}
