/** Reward loops of a session as they travel. */

export interface LoopState {
  readonly elapsedMs: number;
  readonly done: number;
  readonly inFlight: number;
  readonly oldestMs: number;
  readonly left?: number;
  readonly valid: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly cached: number;
  readonly attempts: number;
  readonly hedges: { readonly begun: number; readonly won: number };
  readonly meanScore?: number;
  readonly lanes: readonly {
    readonly lane: string;
    readonly inFlight: number;
    readonly done: number;
  }[];
  readonly latencies: readonly number[];
  readonly latencyBounds: readonly number[];
  readonly version: string;
  readonly workers: number;
  readonly slots: number;
  readonly spent: number;
  readonly spending: readonly SpendState[];
  readonly answeredBy: Readonly<Record<string, number>>;
  readonly endpoints: readonly EndpointState[];
  readonly rewardModels: Readonly<Record<string, ModelState>>;
}

export interface SpendState {
  readonly name: string;
  readonly spent: number;
  readonly cap?: number;
  readonly state: string;
}

export interface EndpointState {
  readonly endpoint: string;
  readonly waiting: number;
  readonly inFlight: number;
  readonly limit: number | null;
  readonly granted: number;
  readonly refused: number;
  readonly requests?: RateState;
  readonly tokens?: RateState;
  readonly breaker?: string;
}

interface RateState {
  readonly limit: number;
  readonly used: number;
}

interface ModelState {
  readonly engine: string;
  readonly state: string;
  readonly servers: readonly unknown[];
}

export interface LoopsAnswer {
  readonly panels: readonly { readonly rewardLog?: string; readonly state: LoopState }[];
}
