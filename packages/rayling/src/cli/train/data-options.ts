/**
 * The texts of the flags of `rayling data`. The work loads on demand.
 */
import type { Command } from "commander";
import { refusalOf } from "../cli-error.ts";
import { addFormatFlag, print } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";
import { plain } from "../output/output.ts";

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
    .requiredOption("--out <path>", "where the rows go, as JSON Lines")
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
        const { DatasetError, prepareGsm8k } = await import("@rayling/trainer");
        const { out: output, format, ...options } = flags;
        try {
          const rows = await prepareGsm8k({ input, output, ...options });
          const answer = { rows, out: output };
          await print(answer, format, () => [`${rows} rows in ${plain(output)}`]);
        } catch (error) {
          throw refusalOf(error, [DatasetError]);
        }
      },
    );
}
