/**
 * The texts of the flags of `rayling data`. The work loads on demand.
 */
import type { Command } from "commander";
import { CliError, refusalOf } from "../cli-error.ts";
import { filePath } from "../flag-values.ts";
import { addFormatFlag, print } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";
import { replaceFile } from "../output/existing-file.ts";
import { plain } from "../output/output.ts";
import { isSameFile } from "../output/same-file.ts";

/** Adds commands for data sets in verl's form. */
export function addDataCommand(program: Command): void {
  const data = program.command("data").summary("prepare data sets to train on");
  const command = data
    .command("gsm8k")
    .summary("GSM8K's original lines as verl's rows")
    .description(
      "Reads GSM8K's own JSON Lines ({ question, answer }), and writes verl's rows: the question with an instruction, and the number behind #### as the ground truth.",
    )
    .argument("<input>", "train.jsonl or test.jsonl of GSM8K")
    .requiredOption("--out <path>", "where the rows go, as JSON Lines", filePath)
    .option("--split <name>", "name of the split, written to each row", "train")
    .option(
      "--instruction <text>",
      "text behind each question (default: steps, then #### and the number)",
    );
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action(
      async (
        input: string,
        flags: FormatFlag & {
          readonly out: string;
          readonly split: string;
          readonly instruction?: string;
        },
      ) => {
        const { out, format, ...options } = flags;
        if (await isSameFile(input, out)) throw new CliError(2, `--out ${out} is the input itself`);
        const { DatasetError, prepareGsm8k } = await import("@rayling/trainer");
        try {
          const rows = await replaceFile(out, "the other file", (output) =>
            prepareGsm8k({ input, output, ...options }),
          );
          await print({ rows, out }, format, () => [`${rows} rows in ${plain(out)}`]);
        } catch (error) {
          throw refusalOf(error, [DatasetError]);
        }
      },
    );
}
