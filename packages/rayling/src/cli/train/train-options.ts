/**
 * The flags of `rayling train`: their texts and checks. The command itself loads when it runs.
 */
import { Option } from "commander";
import type { Command } from "commander";
import { addDashboardFlag, type DashboardFlag } from "../dashboard-flag.ts";
import { exitHelp } from "../exit-codes.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";

export interface TrainOptions extends DashboardFlag, FormatFlag {
  /** The name of a file or preset; a name with a "/" is a path. */
  readonly configName: string;
  readonly configDir: string | undefined;
  /** Hydra's overrides: key=value, +key=value, ++key=value, ~key. */
  readonly overrides: readonly string[];
  /** Whether to print the configuration and end. */
  readonly printConfig: boolean;
  /** Hydra's names for the folder and for printing. */
  readonly configPath: string | undefined;
  readonly cfg: "job" | undefined;
  /** Whether to print the plan and end. */
  readonly dryRun: boolean;
  /** Whether the console prints all metrics of each step. */
  readonly verbose?: boolean | undefined;
}

/** @param run does the work; it loads when the command runs */
export function addTrainCommand(
  program: Command,
  run: (options: TrainOptions) => Promise<void>,
): void {
  const command = program.command("train");
  addFormatFlag(addDashboardFlag(command, "on a terminal"))
    .argument("[overrides...]", "verl's keys: key=value, +key=value, ++key=value, ~key")
    .summary("train a policy by PPO, GRPO and their like, as a configuration says")
    .description(
      "Trains a policy as verl's configuration says: a file, or one of the presets, with changes on the command line.",
    )
    .option("--config-name <name>", "a file of --config-dir, a preset, or a path", "ppo_trainer")
    .option("--config-dir <folder>", "a folder that is searched before the presets")
    .addOption(
      new Option("--config-path <folder>", "--config-dir by Hydra's other name").conflicts(
        "configDir",
      ),
    )
    .addOption(
      new Option("--print-config", "print the whole configuration as YAML, and end").default(false),
    )
    .addOption(new Option("--cfg <what>", "--print-config by Hydra's name").choices(["job"]))
    .addOption(
      new Option("--dry-run", "print the plan, and how long it may take, and end").default(false),
    )
    .option("--verbose", "print all metrics of each step, as verl does")
    .addHelpText("after", help)
    .action(async (overrides: readonly string[], flags: Omit<TrainOptions, "overrides">) => {
      await run({
        ...flags,
        configDir: flags.configDir ?? flags.configPath,
        printConfig: flags.printConfig || flags.cfg === "job",
        overrides,
      });
    });
}

const help = `
Presets: ppo_trainer (verl's defaults), grpo and ppo (the quickstarts), sync, one-step-off, pipeline, both, streaming (the quickstart under each schedule).

Ctrl-C stops; what is in trainer.default_local_dir is gone on with (trainer.resume_mode=auto, trainer.save_freq).
${exitHelp}

Examples:
  rayling train --config-name grpo
  rayling train --config-name streaming trainer.total_training_steps=20 rayling.staleness.limit=1
  rayling train --config-name ppo.yaml trainer.total_epochs=1 algorithm.adv_estimator=grpo reward.custom_reward_function.path=./reward.ts +mini_batch_pipeline=True
  rayling train --config-name grpo reward.limits.max_rpm=3000 reward.retry.enable=true reward.attempt_timeout_ms=20000
  rayling train --dry-run data.train_files=train.jsonl data.val_files=null rayling.expected_seconds='{gen: 40, update_actor: 116, reward: [0, 40]}'`;
