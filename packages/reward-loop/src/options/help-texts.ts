/** Made of the comments in policies.ts and functions.ts: `vitest run packages/reward-loop/test/options -u`. */

// oxfmt-ignore
export const helpTexts = {
  adaptiveOptions: {
    min: "The lower bound of what auto finds.",
    max: "The upper bound of what auto finds.",
    initial: "Where auto begins.",
    latencyTolerance: "An answer that takes so many times as long as the quickest ones did is slow, and lowers what auto finds: for endpoints whose answers all take about as long while they have room.",
  },
  breakerOptions: {
    window: "How many of the last calls are looked at; none is judged by fewer than half of them.",
    threshold: "The share of failures at which the endpoint is not called any more.",
    openMs: "For how long it is not called first; at most 16 times that.",
    probes: "Calls that must go well then.",
  },
  limiterOptions: {
    requestsPerMinute: "Calls in any minute that the endpoint allows, spread over it.",
    tokensPerMinute: "Tokens in any minute that the endpoint allows; counted as `tokensPerRequest` until a score tells its `usage`.",
    concurrency: "Calls at once that the endpoint allows; auto finds out how many.",
    shares: "The shares of lanes that wait at the same time: training, validation, recovery (what is tried again), and any other name; 1 each.",
    breaker: "Whether an endpoint that fails is not called for a while, and probed now and then.",
    minuteMs: "How long a minute of the endpoint is, in ms, where its time goes faster (a replay). With `requestsPerMinute` or `tokensPerMinute`.",
  },
  limitsOptions: {
    endpoint: "Whose limits these are: loops that name the same one share them.",
    tokensPerRequest: "Tokens of a call, until a score tells its `usage`.",
  },
  retryOptions: {
    attempts: "Tries in all; 1: none is repeated.",
    baseMs: "The longest first pause; it doubles with each try.",
    maxMs: "The longest pause.",
    maxRetryAfterMs: "What an endpoint refused that wants to be left alone for longer (retry-after) is not tried again, and its other calls pause no longer than that.",
    classes: "Which failures are tried again.",
    budget: "Further tries that are allowed for each first one, over time.",
  },
  hedgeOptions: {
    quantile: "A call is late that takes longer than this quantile of the last ones did.",
    budget: "Second calls for each first one, at most.",
  },
  pricesOptions: {
    perMillionInputTokens: "The price of a million tokens of prompts.",
    perMillionOutputTokens: "The price of a million tokens of answers.",
    perCall: "The price of a call, whatever it used.",
  },
  purseOptions: {
    prices: "What scores cost by what they say they used (`usage`).",
    cap: "When that much is spent no sample is begun any more (SPEND_CAP); what is under way then is finished, and may go beyond it.",
    warnAt: "The share of the cap at which there is a warning. With `cap`.",
  },
  onFailureOptions: {
    fallback: "The score of samples that cannot be scored, with `fallback: true` among their extra info; without one they are invalid, and masked.",
    again: "Whether what failed because of the endpoint, of limits or of time is scored once more when all others are done.",
    failAbove: "The share of samples without a score at which all of them fail (RewardFailuresError); those with a fallback do not count.",
  },
  spendOptions: {
    whenReached: "A cheaper function that takes over when the cap is reached; without one no sample is begun any more. It costs nothing unless it has prices of its own. With `cap`.",
  },
  sandboxFusionOptions: {
    url: "The `run_code` of a service that runs programs, for the scorers by data source.",
    maxConcurrent: "Programs at once, for all loops that name the service; one that `limits` names counts, too. With `url`.",
    memoryLimitMb: "The memory that each program may take. With `url`.",
  },
  rateLimitedOptions: {
    maxConcurrent: "Used by the manager rate_limited: calls at once.",
    maxRpm: "Used by the manager rate_limited: calls a minute.",
    maxTpm: "Used by the manager rate_limited: tokens a minute.",
    estimatedTokensPerRequest: "Used by the manager rate_limited: tokens of a call.",
  },
  partOptions: {
    workers: "Reward loop workers; where nobody says how many, several functions share those of one.",
    concurrency: "Samples at work per worker; a quarter more stand ready where they are next.",
    executors: "Threads, or processes, of each worker in which score functions run: while one is blocked, another goes on.",
    executorIsolation: "What an executor is: a thread, or a process of its own for code that may crash (native add-ons, process.abort, memory beyond any limit), which costs its own sample then. A process takes longer to start and some 50 MB.",
    timeoutMs: "How long a score function may take for one try, from its start.",
    totalTimeoutMs: "How long a sample may take from when a worker takes it on, with its waiting and all of its tries; its time in the loop's own line does not count.",
    startTimeoutMs: "How long the modules may take to load.",
    reward: "The score function: PATH[:name], or with rewardKwargs.",
    limits: "Limits of the endpoint that the function calls, for all workers of all loops that name it.",
    retry: "Whether what failed and may go better later is scored again.",
    hedge: "Whether a call that takes longer than most is begun a second time beside it.",
    cache: "A file (SQLite) of scores that were given before, and are not paid for again; :memory: is kept for this loop alone.",
    joinSame: "Whether samples that say the same and come together are asked for once.",
    spend: "Prices by what scores say they used, and what may be spent.",
    sandboxFusion: "The service in which programs are tested (verl's data sources codecontests, apps, codeforces, taco).",
    manager: "A manager's name, or the path of its class.",
    managerOptions: "The manager's own settings; others than it reads are refused, but for a class of yours.",
    tokenizer: "A model's folder, or a module that exports a function that makes the tokenizer (default name createTokenizer); it gets `rewardKwargs`.",
    rewardRouterAddress: "The host:port of a reward model's router, handed to the score function.",
    rewardRouterToken: "The router demands this token. The score function gets it beside the address, and `@rayling/reward-loop/client` sends it by itself.",
    baseDirectory: "Where relative paths start.",
    resourceLimits: "Heap limits of an executor: a score function that reaches one is reported, the others go on.",
  },
  functionOptions: {
    onFailure: "What becomes of samples that cannot be scored.",
    rewardModel: "A reward model, for score functions of yours that ask it, or without one to score by itself.",
    name: "What workers are called, with _ and their number behind it.",
  },
  stageOptions: {
    passOn: "When the next one is asked. cannotTell (in files cannot_tell): when this one cannot tell, as it returns null or a score of null; invalid: when it has no score for whatever reason, not of the last one, which nobody comes after.",
  },
  componentOptions: {
    weight: "How much it counts; 0 or below may be: a score that is only looked at, a penalty.",
    onInvalid: "What a sample is worth where this one is invalid. mask: it is invalid, too; leaveOut (in files leave_out): what the others say, and invalid if none is left; a number (in the library `{ score }`): that score in its place.",
    cascade: "In place of its function.",
  },
  loopOptions: {
    rewards: "Several rewards of each sample, by name, in place of one function: each has a function or a cascade, a weight, and what it has differently of the policies beside this; limits belong to each by itself. Their scores are put together.",
    combine: "How the rewards become one score. sum: the sum of weight x score; mean: that divided by the sum of the weights. With `rewards`.",
    cascade: "Functions that are asked in order, by name, in place of one: the next one only when the one before cannot tell.",
    spentBefore: "The reward log of an earlier part of the run: what its scores have cost is spent, of the caps; a file that is not there says that nothing is.",
    record: "A reward log (JSON Lines) to which every outcome is appended.",
    replay: "The reward log of an earlier run that outcomes are taken from, by what samples say. Without a function nothing else is started.",
  },
  replayOptions: {
    log: "The file.",
    missing: "What becomes of samples that are not in there. fail: they are invalid (NOT_IN_LOG); ask: the functions are asked.",
  },
};
