/**
 * The call that is on the stack of an actor and is over when its method returns. Its scope is made
 * when somebody asks for it.
 */
import type { RunningCall, SyncTask, TaskScope } from "../../../caller/waits/task-scope.ts";
import type { CallMessage } from "../../../protocol/message.ts";
import type { Session } from "../../../rpc/session/session.ts";
import { RaySystemError } from "../../../shared/errors.ts";
import { Execution, type ExecutionSite } from "../execution.ts";

export class CallOnStack implements SyncTask {
  readonly #site: ExecutionSite;
  #call: CallMessage | undefined;
  #session: Session | undefined;
  #scope: Execution | undefined;

  constructor(site: ExecutionSite) {
    this.#site = site;
  }

  begin(call: CallMessage, session: Session): void {
    this.#call = call;
    this.#session = session;
  }

  get running(): RunningCall | undefined {
    const call = this.#call;
    const session = this.#session;
    if (call === undefined || session === undefined) return undefined;
    return {
      taskId: `${session.peerId}:${call.sequence}`,
      name: call.route.shape?.name ?? this.#site.functionName(call.route),
      actorId: this.#site.actor?.info.actorId,
      sinceMs: session.calls.sinceMs,
    };
  }

  scope(): TaskScope {
    const call = this.#call;
    const session = this.#session;
    if (call === undefined || session === undefined)
      throw new RaySystemError("no call is on the stack");
    return (this.#scope ??= new Execution(call, session, this.#site));
  }

  /** Ends the call. Returns its scope if that was made. */
  end(): Execution | undefined {
    const scope = this.#scope;
    this.#call = undefined;
    this.#session = undefined;
    this.#scope = undefined;
    return scope;
  }
}
