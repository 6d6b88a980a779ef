/** The views of a session as they travel. */

export interface LogTail {
  readonly isCollected: boolean;
  readonly lines: readonly {
    readonly number: number;
    readonly owner: string;
    readonly stream: "stdout" | "stderr";
    readonly text: string;
  }[];
}

export interface Overview {
  readonly status: {
    readonly driver: {
      readonly namespace: string;
      readonly pid: number;
      readonly script: string;
      readonly startTimeMs: number;
    };
    readonly timeMs: number;
    readonly nodes: readonly NodeStatus[];
    readonly actors: Readonly<Record<string, number>>;
    readonly placementGroups: Readonly<Record<string, number>>;
    readonly pending: readonly {
      readonly first: string;
      readonly count: number;
      readonly feasible: boolean;
      readonly reason: string;
      readonly waitingMs: number;
    }[];
  };
  readonly actorsByClass: readonly {
    readonly className: string;
    readonly states: Readonly<Record<string, number>>;
  }[];
  readonly callsPerSecond?: number;
  readonly running: number;
  readonly queued: number;
  readonly tasks: {
    readonly total: number;
    readonly byName: Readonly<Record<string, Readonly<Record<string, number>>>>;
  };
  readonly stuck: readonly {
    readonly actorId: string;
    readonly className: string;
    readonly state: string;
    readonly pendingReason: string;
  }[];
  readonly memory: {
    readonly processBytes: number;
    readonly processLimitBytes: number;
    readonly spilledBytes: number;
    readonly residentBytes: number;
  };
  readonly missing: readonly string[];
  readonly logs: LogTail;
}

export interface NodeStatus {
  readonly nodeId: string;
  readonly nodeName: string;
  readonly hostname: string;
  readonly state: "ALIVE" | "DEAD";
  readonly isHeadNode: boolean;
  readonly resources: Readonly<Record<string, { readonly used: number; readonly total: number }>>;
  readonly stateMessage?: string;
}

export type PlainRow = Readonly<Record<string, unknown>>;

export interface RowsAnswer {
  readonly total: number;
  readonly found: number;
  readonly missing: readonly string[];
  readonly rows: readonly PlainRow[];
}

export interface ActorAnswer {
  readonly actor: PlainRow;
  readonly calls: { readonly total: number; readonly rows: readonly PlainRow[] };
  readonly logs: LogTail;
}
