/** An input or setting that cannot be used. Code "TRAINER_INPUT". */
export class TrainerInputError extends Error {
  override readonly name = "TrainerInputError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "TRAINER_INPUT";
  /** Name of the input or setting. */
  readonly input: string;

  constructor(input: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.input = input;
  }
}

/** Another training writes to a folder that this one is to write to. Code "FOLDER_BUSY". */
export class FolderBusyError extends Error {
  override readonly name = "FolderBusyError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "FOLDER_BUSY";
  /** Name of the option that names the folder. */
  readonly option: string;
  /** Path of the folder. */
  readonly path: string;
  /** The process that trains there. */
  readonly pid: number;

  constructor(option: string, path: string, pid: number, options?: ErrorOptions) {
    const who = pid === process.pid ? "this process" : `process ${pid}`;
    super(
      `${option}: ${path} is being trained in by ${who}: wait until that has ended, or name another folder`,
      options,
    );
    this.option = option;
    this.path = path;
    this.pid = pid;
  }
}

/**
 * Place of a row in a data set: a line of a file, from 1, or a row (of a Parquet file, of an
 * array), from 0.
 */
export interface RowPlace {
  /** The file. */
  readonly path?: string;
  /** The line of a JSON Lines file, 1-based. */
  readonly line?: number;
  /** The row of a Parquet file or an array, 0-based. */
  readonly row?: number;
}

/** A data set that cannot be trained on, or a row of it. Code "DATASET". */
export class DatasetError extends Error {
  override readonly name = "DatasetError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "DATASET";
  /** The file, if the row is from one. */
  readonly path: string | undefined;
  /** The line of a JSON Lines file, 1-based. */
  readonly line: number | undefined;
  /** The row of a Parquet file or an array, 0-based. */
  readonly row: number | undefined;
  /** The message without the place. */
  readonly reason: string;

  constructor(reason: string, place: RowPlace, options?: ErrorOptions) {
    const file =
      place.line === undefined ? place.path : `${place.path ?? ""}:${String(place.line)}`;
    const where = [file, place.row === undefined ? undefined : `row ${String(place.row)}`];
    const said = where.filter((one) => one !== undefined).join(", ");
    super(said === "" ? reason : `${said}: ${reason}`, options);
    this.path = place.path;
    this.line = place.line;
    this.row = place.row;
    this.reason = reason;
  }
}

/** Kinds of failure of a logger. */
export type TrackingErrorCode =
  /** A logger cannot begin, or its name is unknown: the run does not start. */
  | "TRACKING_OPEN"
  /** A logger failed while the run went on: it receives nothing more. */
  | "TRACKING_FAILED"
  /** A logger cannot deliver some reports, now or at all: it receives further ones. */
  | "TRACKING_INCOMPLETE"
  /** Files of a run cannot be read or written. */
  | "TRACKING_FILES";

/** A logger of a run failed. */
export class TrackingError extends Error {
  override readonly name = "TrackingError";
  /** The kind of the failure: compare this, not the message. */
  readonly code: TrackingErrorCode;
  /** Name of the logger, or path of the file. */
  readonly logger: string;

  constructor(code: TrackingErrorCode, logger: string, problem: string, cause?: unknown) {
    const reason = cause instanceof Error ? `: ${cause.message}` : "";
    super(`tracking "${logger}": ${problem}${reason}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.logger = logger;
  }
}

/** Kinds of failure of a checkpoint. */
export type CheckpointErrorCode =
  /** The path of the checkpoint does not exist. */
  | "CHECKPOINT_NOT_FOUND"
  /** A file is missing, cut off, or not what was written. */
  | "CHECKPOINT_DAMAGED"
  /** A value cannot be saved because it is not plain data, or an option is wrong. */
  | "CHECKPOINT_BAD_VALUE"
  /** A path that cannot be one. */
  | "CHECKPOINT_BAD_PATH"
  /** Any other failure of the file system. The cause has its `code`. */
  | "CHECKPOINT_IO";

/** A checkpoint that could not be saved, or cannot be gone on with. */
export class CheckpointError extends Error {
  override readonly name = "CheckpointError";
  /** The kind of the failure: compare this, not the message. */
  readonly code: CheckpointErrorCode;
  /** Path of the file or folder. */
  readonly path: string;
  /** The message without the path. */
  readonly reason: string;

  constructor(code: CheckpointErrorCode, path: string, reason: string, options?: ErrorOptions) {
    super(`${path}: ${reason}`, options);
    this.code = code;
    this.path = path;
    this.reason = reason;
  }
}

/** Kinds of state in which training cannot continue. */
export type TrainerStateErrorCode =
  /** A policy did not generate what it was asked for. */
  | "BAD_ROLLOUTS"
  /** A policy or a critic did not answer within `run.policyTimeoutMs`. */
  | "POLICY_TIMEOUT"
  /** DAPO's filter left too few groups. */
  | "FILTERED_OUT"
  /** No sample of a batch whose groups are filtered has a valid score. */
  | "NO_SCORES"
  /** The filter's metric, or a component of gdpo, is not among the extra info. */
  | "NO_METRIC"
  /** A checkpoint is of another version. */
  | "OTHER_FORMAT"
  /** A schedule saves or validates before it has reported a step. */
  | "NO_FINISHED_STEP";

/** A state in which training cannot continue. */
export class TrainerStateError extends Error {
  override readonly name = "TrainerStateError";
  /** The kind of the failure: compare this, not the message. */
  readonly code: TrainerStateErrorCode;

  constructor(code: TrainerStateErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface ConfigErrorPlace {
  /** The key with dots: `data.train_batch_size`. */
  readonly key: string;
  /** The value at this key, if there is one. */
  readonly value: unknown;
  /**
   * A key or a value that there is, and that is written much alike; or a setting, as key=value,
   * that would do.
   */
  readonly nearest: string | undefined;
}

/** A configuration that cannot be used: what is wrong with which key. Code "TRAINER_CONFIG". */
export class TrainerConfigError extends Error {
  override readonly name = "TrainerConfigError";
  readonly code = "TRAINER_CONFIG";
  readonly key: string;
  readonly value: unknown;
  readonly nearest: string | undefined;

  constructor(message: string, place: ConfigErrorPlace, options?: ErrorOptions) {
    super(message, options);
    this.key = place.key;
    this.value = place.value;
    this.nearest = place.nearest;
  }
}
