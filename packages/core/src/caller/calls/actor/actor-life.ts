/** One life of an actor, as calls reach it: over which session, and with how much room. */
import type { Route } from "../../../protocol/message.ts";
import type { CallWindow } from "../../../rpc/session/call-window.ts";
import type { Session } from "../../../rpc/session/session.ts";
import type { DeathCause } from "../../../shared/errors.ts";
import type { Call } from "../call.ts";

export interface ActorPlace {
  readonly session: Session;
  /** The actor's own id. */
  readonly target: string;
  readonly incarnation: number;
  /** Calls of the actor that may run together. */
  readonly concurrency: number;
}

export class ActorLife {
  readonly session: Session;
  readonly incarnation: number;
  readonly #target: string;
  readonly #concurrency: number;
  readonly #window: CallWindow;
  readonly #unwatch: () => void;
  /** Routes of a handle that was given another id by getIfExists, and theirs to the actor. */
  #routes: WeakMap<Route, Route> | undefined;
  #sent = 0;
  #isFull = false;
  #hasAskedForCredit = false;
  #endWatchingWindow: (() => void) | undefined;
  #isLeft = false;

  constructor(place: ActorPlace, onClosed: (reason: DeathCause) => void) {
    this.session = place.session;
    this.incarnation = place.incarnation;
    this.#target = place.target;
    this.#concurrency = place.concurrency;
    this.#window = place.session.windows.enter(place.target);
    this.#unwatch = place.session.whenClosed(onClosed);
  }

  is(session: Session | undefined, incarnation: number): boolean {
    return this.session === session && this.incarnation === incarnation;
  }

  /** Calls wait for room; `onRoom` is about to be called. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether one more call may be sent. */
  get hasRoom(): boolean {
    return (
      this.#window.isFree(this.#concurrency) ||
      this.session.requests.credit.allows(this.#concurrency)
    );
  }

  /** Sends a call whose arguments are ready; it fails instead if one of them failed. */
  send(call: Call): void {
    call.send(this, this.#routeOf(call.plan.route));
    if (call.session === undefined) return;
    this.#sent += 1;
    this.#window.sent();
  }

  /** Calls `onRoom` once when one more call may be sent again. */
  waitForRoom(onRoom: () => void): void {
    const goOn = (): void => {
      this.#stopWaiting();
      onRoom();
    };
    this.#isFull = true;
    // The session may be full of calls to other actors of its host, which may never end.
    this.#endWatchingWindow ??= this.#window.watch(() => {
      if (this.#window.isFree(this.#concurrency)) goOn();
    });
    if (this.#hasAskedForCredit) return;
    this.#hasAskedForCredit = true;
    this.session.requests.credit.whenAllowed(this.#concurrency, () => {
      this.#hasAskedForCredit = false;
      if (!this.#isLeft) goOn();
    });
  }

  /** A call that was sent is under way no more. */
  back(): void {
    this.#sent -= 1;
    this.#window.back(1);
  }

  /** Nothing more is sent to it. Returns how many calls are under way. */
  leave(): number {
    if (this.#isLeft) return 0;
    this.#isLeft = true;
    this.#unwatch();
    this.#stopWaiting();
    const sent = this.#sent;
    this.#sent = 0;
    this.#window.back(sent);
    this.session.windows.leave(this.#window);
    return sent;
  }

  #stopWaiting(): void {
    this.#isFull = false;
    this.#endWatchingWindow?.();
    this.#endWatchingWindow = undefined;
  }

  #routeOf(route: Route): Route {
    if (route.target === this.#target) return route;
    const routes = (this.#routes ??= new WeakMap());
    let own = routes.get(route);
    if (own === undefined) {
      own = { ...route, target: this.#target };
      routes.set(route, own);
    }
    return own;
  }
}
