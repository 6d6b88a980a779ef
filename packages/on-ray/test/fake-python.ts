/**
 * Actors of a Ray of the tests' own: one class in Python, `demo:Adder`, one actor that lives by name,
 * and detached ones, which are adders, too.
 */

interface Values {
  readonly value: readonly [unknown[], Record<string, unknown>];
  readonly buffers: readonly string[];
}

interface Given {
  readonly actorId: string;
  readonly path?: string;
  readonly name?: string;
  readonly method?: string;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly args?: Values;
  readonly allNamespaces?: boolean;
  readonly callId?: string;
}

interface Adder {
  sum: number;
  isDead: boolean;
}

export class FakePython {
  /** Options of actors that were made. */
  readonly made: unknown[] = [];
  /** Requests to cancel a call. */
  readonly cancelled: unknown[] = [];
  /** A call has come that gets its answer when it is cancelled. */
  onStuck: () => void = () => undefined;
  readonly #stuck: Map<string, (answer: object) => void> = new Map();
  /** That of the job. */
  namespace = "";
  readonly #actors: Map<string, Adder> = new Map();
  readonly #named: Map<string, Adder> = new Map([["counter", { sum: 100, isDead: false }]]);

  do(op: string, given: Given): object | Promise<object> {
    const { actorId, path, name = "", options, args } = given;
    if (op === "python_list") return ok(this.#names(given.allNamespaces === true));
    if (op === "python_cancel") {
      this.cancelled.push(given);
      this.#stuck.get(String(given.callId))?.(failure("cancelled", "TaskCancelledError", "Task"));
      return ok(null);
    }
    if (op === "python_find") {
      const found = this.#named.get(name);
      if (found === undefined) return failure("missing", "ValueError", `no ${name}`);
      this.#actors.set(actorId, found);
      return ok(null);
    }
    if (op === "python_create") {
      if (path !== "demo:Adder") return failure("refused", "ModuleNotFoundError", `no ${path}`);
      this.made.push(options);
      const [[start = 0]] = args?.value ?? [[]];
      this.#actors.set(actorId, { sum: Number(start), isDead: false });
      return ok(null);
    }
    if (op === "python_make") {
      const named = String(options?.["name"]);
      if (this.#named.has(named)) return failure("taken", "ValueError", named);
      const adder = { sum: Number(args?.value[0][0] ?? 0), isDead: false };
      this.made.push(given);
      this.#named.set(named, adder);
      this.#actors.set(actorId, adder);
      return ok(null);
    }
    const actor = this.#actors.get(actorId);
    if (actor === undefined || actor.isDead) return failure("died", "ActorDiedError", "killed");
    if (op === "python_kill") {
      actor.isDead = true;
      return ok(null);
    }
    if (given.method !== "stick") return call(actor, given);
    this.onStuck();
    return new Promise((resolve) => this.#stuck.set(String(given.callId), resolve));
  }

  #names(isEverywhere: boolean): object[] {
    const own = [...this.#named].filter(([, { isDead }]) => !isDead);
    const there = own.map(([name]) => ({ name, namespace: this.namespace }));
    return isEverywhere ? [...there, { name: "counter", namespace: "elsewhere" }] : there;
  }
}

function call(actor: Adder, { method, args }: Given): object {
  const [[by], keywords] = args?.value ?? [[], {}];
  switch (method) {
    case "add":
      actor.sum += Number(by) * Number(keywords["times"] ?? 1);
      return ok(actor.sum);
    case "echo":
      return { ok: { value: by, buffers: args?.buffers ?? [] } };
    case "vanish":
      return failure("unavailable", "ActorUnavailableError", "the node is out of reach");
    case "fail":
      return failure("thrown", "KeyError", "'x'", 'Traceback:\n  File "demo.py", line 3\n');
    default:
      return failure("method", "AttributeError", String(method));
  }
}

function ok(value: unknown): object {
  return { ok: { value, buffers: [] } };
}

function failure(kind: string, type: string, message: string, traceback = ""): object {
  return { failure: { kind, type, message, traceback } };
}
