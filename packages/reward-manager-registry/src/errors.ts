/**
 * Every error of this package: one class per thing that a caller would handle differently,
 * identified by `code`. Fields are plain data, so an error keeps them on the way between threads or
 * machines. Errors of a user's score function are not here: they pass through the package
 * unchanged.
 */

import { messageOf } from "./values/caught.ts";

/** A score function returned a value that is no score. A failed score is never a zero. */
export class InvalidScoreError extends Error {
  override readonly name = "InvalidScoreError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_SCORE";
  /** The data source of the sample. */
  readonly dataSource: string;
  /** A description of the returned value. */
  readonly received: string;
  /** The extra info beside the score, which may still report costs of the call. */
  readonly extraInfo: Readonly<Record<string, unknown>>;

  constructor(
    dataSource: string,
    received: string,
    extraInfo: Readonly<Record<string, unknown>> = {},
  ) {
    super(
      `The score function returned ${received} for a sample of "${dataSource}". A score is a finite number, boolean or bigint, ` +
        `{ score, ...extras } or [score, query, response] with texts or null behind the score; null says that it cannot tell.`,
    );
    this.dataSource = dataSource;
    this.received = received;
    this.extraInfo = extraInfo;
  }
}

/**
 * A score function cannot score this sample: it returned null, or a record whose score is null.
 * This is no zero; a cascade asks the next function.
 */
export class CannotTellError extends Error {
  override readonly name = "CannotTellError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "CANNOT_TELL";
  /** The data source of the sample. */
  readonly dataSource: string;
  /** The extra info beside the score. */
  readonly extraInfo: Readonly<Record<string, unknown>>;

  constructor(dataSource: string, extraInfo: Readonly<Record<string, unknown>>) {
    super(`The score function cannot tell the score of a sample of "${dataSource}".`);
    this.dataSource = dataSource;
    this.extraInfo = extraInfo;
  }
}

/**
 * The parameters of a score function are unclear: it might read its arguments as something else and
 * make a score of nothing.
 */
export class RewardFunctionSignatureError extends Error {
  override readonly name = "RewardFunctionSignatureError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_FUNCTION_SIGNATURE";
  /** The name of the function. */
  readonly functionName: string;
  /** The declared parameters; undefined when the source is not visible. */
  readonly parameters: string | undefined;
  /** Why it cannot be called. */
  readonly problem: string;

  constructor(functionName: string, parameters: string | undefined, problem: string) {
    super(
      `The score function ${functionName}${parameters ?? ""} cannot be called: ${problem}. ` +
        "Write it as ({ solutionStr, groundTruth, extraInfo }) => score, or with verl's arguments as (dataSource, solutionStr, groundTruth, extraInfo) => score.",
    );
    this.functionName = functionName;
    this.parameters = parameters;
    this.problem = problem;
  }
}

/**
 * A score function read an argument that it was not given: its result is no score, even if it
 * caught this error.
 */
export class UnknownScoreArgumentError extends Error {
  override readonly name = "UnknownScoreArgumentError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "UNKNOWN_SCORE_ARGUMENT";
  /** The name that was read. */
  readonly argument: string;
  /** The argument that the name may mean. */
  readonly nearest: string | undefined;
  /** Names of the arguments that were given. */
  readonly known: readonly string[];

  constructor(argument: string, nearest: string | undefined, known: readonly string[]) {
    const meant = nearest === undefined ? "" : ` (did you mean ${nearest}?)`;
    super(
      `The score function read ${JSON.stringify(argument)}, which it was not given${meant}. It has ${listed(known)}. ` +
        `One of reward_kwargs that may be missing needs a default: ({ name = 0 }) => …, or a look whether it is there: "name" in input.`,
    );
    this.argument = argument;
    this.nearest = nearest;
    this.known = known;
  }
}

/** A sample lacks a field that scoring needs, or has a wrong value in it. */
export class InvalidSampleError extends Error {
  override readonly name = "InvalidSampleError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_SAMPLE";
  /** The name of the field. */
  readonly field: string;
  /** A description of its value. */
  readonly received: string;

  constructor(field: string, expected: string, received: string) {
    super(`A sample's ${field} must be ${expected}; it is ${received}.`);
    this.field = field;
    this.received = received;
  }
}

/** A reward manager's own settings are wrong. */
export class InvalidManagerOptionError extends Error {
  override readonly name = "InvalidManagerOptionError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_MANAGER_OPTION";
  /** The name of the manager. */
  readonly manager: string;
  /** The name of the option. */
  readonly option: string;
  /** A description of its value. */
  readonly received: string;

  constructor(manager: string, option: string, expected: string, received: string) {
    super(
      `Option ${option} of reward manager "${manager}" must be ${expected}; it is ${received}.`,
    );
    this.manager = manager;
    this.option = option;
    this.received = received;
  }
}

/** The response consists of token ids, and there is no tokenizer. */
export class MissingTokenizerError extends Error {
  override readonly name = "MissingTokenizerError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "MISSING_TOKENIZER";
  /** The data source of the sample. */
  readonly dataSource: string;

  constructor(dataSource: string) {
    super(
      `A sample of "${dataSource}" has its response as token ids: give a tokenizer, or put the response text into the sample.`,
    );
    this.dataSource = dataSource;
  }
}

/** Another class already has this name and keeps it. */
export class RewardManagerConflictError extends Error {
  override readonly name = "RewardManagerConflictError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_MANAGER_CONFLICT";
  /** The name that is taken. */
  readonly managerName: string;
  /** The class that keeps the name. */
  readonly kept: string;
  /** The class that was not registered. */
  readonly refused: string;

  constructor(managerName: string, kept: string, refused: string) {
    super(
      `Reward manager "${managerName}" is ${kept} already; ${refused} was not registered. Register it under another name.`,
    );
    this.managerName = managerName;
    this.kept = kept;
    this.refused = refused;
  }
}

/** No reward manager is registered under the name. */
export class UnknownRewardManagerError extends Error {
  override readonly name = "UnknownRewardManagerError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "UNKNOWN_REWARD_MANAGER";
  /** The name that was asked for. */
  readonly managerName: string;
  /** All registered names. */
  readonly known: readonly string[];

  constructor(managerName: string, known: readonly string[]) {
    super(
      `Unknown reward manager: "${managerName}". Known: ${listed(known)}. Names are case sensitive.`,
    );
    this.managerName = managerName;
    this.known = known;
  }
}

/** A class without a `runSingle` method was used as a reward manager. */
export class InvalidRewardManagerError extends Error {
  override readonly name = "InvalidRewardManagerError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_REWARD_MANAGER";
  /** The name of the class. */
  readonly className: string;

  constructor(className: string) {
    super(`${className} is no reward manager: its instances have no method runSingle(sample).`);
    this.className = className;
  }
}

/** No row of verl's routing table has the data source. */
export class UnknownDataSourceError extends Error {
  override readonly name = "UnknownDataSourceError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "UNKNOWN_DATA_SOURCE";
  /** The data source. */
  readonly dataSource: string;

  constructor(dataSource: string) {
    super(
      `Reward function is not implemented for data_source='${dataSource}'. Give a score function of your own for it.`,
    );
    this.dataSource = dataSource;
  }
}

/** This machine cannot run programs of this language. */
export class SandboxUnavailableError extends Error {
  override readonly name = "SandboxUnavailableError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "SANDBOX_UNAVAILABLE";
  /** The language of the program. */
  readonly language: string;

  constructor(language: string, problem: string, options?: ErrorOptions) {
    super(
      `Programs in ${language} cannot be run here: ${problem}. Give the url of a sandbox service, or a score function of your own.`,
      options,
    );
    this.language = language;
  }
}

/**
 * This machine could not run a program at the moment: a full disk, too many files or processes. The
 * error says nothing about the program, and a later attempt may succeed.
 */
export class SandboxResourceError extends Error {
  override readonly name = "SandboxResourceError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "SANDBOX_RESOURCE";

  constructor(problem: string, options?: ErrorOptions) {
    super(`This machine cannot run a program at the moment: ${problem}`, options);
  }
}

/** A sandbox service failed. The error says nothing about the program. */
export class SandboxServiceError extends Error {
  override readonly name = "SandboxServiceError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "SANDBOX_SERVICE";
  /** The HTTP status, if that was the failure. */
  readonly status: number | undefined;
  /** The headers of the answer, which may say how long to wait. */
  readonly headers: Headers | undefined;
  /** The first 2,000 characters of an answer that is of no use; empty: it had none. */
  readonly body: string;

  constructor(
    problem: string,
    {
      status,
      headers,
      body = "",
      cause,
    }: { status?: number; headers?: Headers; body?: string; cause?: unknown } = {},
  ) {
    const said = body.trim() === "" ? "." : `: ${body.trim().slice(0, 200)}`;
    super(`The sandbox service failed: ${problem}${said}`, cause === undefined ? {} : { cause });
    this.status = status;
    this.headers = headers;
    this.body = body.slice(0, 2000);
  }
}

/** An option of a scorer or of a sandbox is wrong. */
export class InvalidScorerOptionError extends Error {
  override readonly name = "InvalidScorerOptionError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_SCORER_OPTION";
  /** The name of the option. */
  readonly option: string;
  /** A description of its value. */
  readonly received: string;

  constructor(option: string, expected: string, received: string) {
    super(`Scorer option ${option} must be ${expected}; it is ${received}.`);
    this.option = option;
    this.received = received;
  }
}

/** The text or path of a module and an export is malformed. */
export class InvalidRewardSpecError extends Error {
  override readonly name = "InvalidRewardSpecError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_REWARD_SPEC";
  /** The text or path. */
  readonly spec: string;

  constructor(spec: string, problem: string) {
    super(
      `Cannot read the reward spec "${spec}": ${problem} Forms: ./reward.ts, /abs/reward.ts, file:///abs/reward.ts, pkg:name/sub, each with :name behind it or not.`,
    );
    this.spec = spec;
  }
}

/** The module does not exist. */
export class RewardModuleNotFoundError extends Error {
  override readonly name = "RewardModuleNotFoundError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_MODULE_NOT_FOUND";
  /** The path as it was given. */
  readonly path: string;
  /** The file that was tried, or, for a package, the directory from which it was resolved. */
  readonly tried: string;

  constructor(path: string, tried: string, advice: string, options?: ErrorOptions) {
    super(`Reward module "${path}" was not found (tried ${tried}). ${advice}`, options);
    this.path = path;
    this.tried = tried;
  }
}

/** The path names a Python module, whose functions cannot be called here. */
export class RewardModuleLanguageError extends Error {
  override readonly name = "RewardModuleLanguageError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_MODULE_LANGUAGE";
  /** The path as it was given. */
  readonly path: string;

  constructor(path: string) {
    super(
      `Reward module "${path}" is Python, and reward functions here are JavaScript or TypeScript. Port it line by line: docs/verl-reward-functions.md shows verl's snippets and their translation. ` +
        "Or serve it in Python over HTTP, and call that from your function.",
    );
    this.path = path;
  }
}

/** The module exists and failed to load; `cause` is its error. */
export class RewardModuleImportError extends Error {
  override readonly name = "RewardModuleImportError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_MODULE_IMPORT";
  /** The path as it was given. */
  readonly path: string;
  /** The URL of the module that was imported. */
  readonly url: string;

  constructor(path: string, url: string, cause: unknown) {
    super(`Reward module "${path}" failed while it loaded (${url}): ${whyNotImported(cause)}`, {
      cause,
    });
    this.path = path;
    this.url = url;
  }
}

/**
 * Says what failed. For a missing package Node proposes a file inside of one that another package
 * has for itself, as pnpm keeps them; the module's own folder needs the package.
 */
function whyNotImported(cause: unknown): string {
  const message = messageOf(cause);
  const [found, name] = missingPackage.exec(message) ?? [];
  if (found === undefined || name === undefined) return message;
  return `${found}. It is not installed there: npm install ${name}`;
}

const missingPackage =
  /^Cannot find package '([^'./][^']*)' imported from .*?(?= Did you mean |\s*$)/;

/** The module has no export of that name, or none of the default names. */
export class RewardExportNotFoundError extends Error {
  override readonly name = "RewardExportNotFoundError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_EXPORT_NOT_FOUND";
  /** The path of the module, as it was given. */
  readonly path: string;
  /** The names that were tried. */
  readonly wanted: readonly string[];
  /** Names of the module's exports. */
  readonly available: readonly string[];

  constructor(path: string, wanted: readonly string[], available: readonly string[]) {
    super(
      `Reward module "${path}" has no export ${wanted.join(" or ")}. Its exports: ${listed(available)}. Name one with PATH:name.`,
    );
    this.path = path;
    this.wanted = wanted;
    this.available = available;
  }
}

/** The export exists and is of the wrong kind. */
export class RewardExportTypeError extends Error {
  override readonly name = "RewardExportTypeError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_EXPORT_TYPE";
  /** The path of the module, as it was given. */
  readonly path: string;
  /** The name of the export. */
  readonly exportName: string;
  /** The kind that it must be. */
  readonly expected: "function" | "class";
  /** A description of the export. */
  readonly received: string;

  constructor(path: string, exportName: string, expected: "function" | "class", received: string) {
    super(
      `Export ${exportName} of reward module "${path}" must be a ${expected}; it is ${received}.`,
    );
    this.path = path;
    this.exportName = exportName;
    this.expected = expected;
    this.received = received;
  }
}

/** A class has a method whose name almost matches a hook: it would never be called. */
export class RewardHookNameError extends Error {
  override readonly name = "RewardHookNameError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_HOOK_NAME";
  /** The path of the module, as it was given. */
  readonly path: string;
  /** The name of the class. */
  readonly exportName: string;
  /** The name of the method. */
  readonly method: string;
  /** The hook that the name resembles. */
  readonly meant: string;

  constructor(path: string, exportName: string, method: string, meant: string) {
    super(
      `${exportName} of reward module "${path}" has a method ${method}, which is never called: name it ${meant}, or choose a less similar name.`,
    );
    this.path = path;
    this.exportName = exportName;
    this.method = method;
    this.meant = meant;
  }
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}
