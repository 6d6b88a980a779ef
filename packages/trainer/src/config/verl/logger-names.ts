/** Names for `trainer.logger`: loggers that exist here, and verl's that do not. */

/** Loggers that come with the package, in the order in which they receive reports. */
export const loggerNames = [
  "console",
  "file",
  "tensorboard",
  "wandb",
  "mlflow",
  "trackio",
  "prometheus",
  "report",
  "trace",
] as const;

/** verl's loggers that do not exist here. */
export const otherLoggers = ["swanlab", "vemlp_wandb", "clearml", "rl_insight"] as const;
