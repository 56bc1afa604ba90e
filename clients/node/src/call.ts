import type { Node } from "./node.js";
import { Reply, type Query } from "./protocol.js";

/** A call of the program, or one of the client's own, for which no caller waits. */
export class Call {
  settled = false;
  /** The error of the last node that was asked. */
  lastError: Error | undefined;
  /** The nodes that have refused the call for a reason that is about the sequence. */
  readonly refusedBy = new Set<Node>();
  readonly deadline: number;
  /** Whether a caller waits. */
  isAwaited = false;
  #timer: NodeJS.Timeout | undefined;
  #stopListening: (() => void) | undefined;

  constructor(
    readonly query: Query<unknown>,
    readonly timeoutMs: number,
    private readonly finish: (error: Error | undefined, values: bigint[]) => void,
  ) {
    this.deadline = performance.now() + timeoutMs;
  }

  /** Makes this a call that a caller awaits, which the deadline or a signal ends. */
  await(expire: () => void, signal: AbortSignal | undefined): void {
    this.isAwaited = true;
    // The timer keeps the process alive while the call waits. If the program kept the event loop busy, the reply may
    // have arrived meanwhile: setImmediate lets it be read first.
    this.#timer = setTimeout(() => setImmediate(expire), Math.ceil(this.timeoutMs));
    if (signal === undefined) return;
    const abort = () => this.end(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    this.#stopListening = () => signal.removeEventListener("abort", abort);
  }

  /** Ends the call with an error or with values, unless it has ended. */
  end(error: Error | undefined, values: bigint[] = []): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.#timer);
    this.#stopListening?.();
    this.finish(error, values);
  }
}

/** One node's try at a call. `shareMs` is how long the node may be silent, `failures` its failures before. */
export class Request {
  readonly reply: Reply;
  /** When it was sent. */
  since = performance.now();

  constructor(
    readonly call: Call,
    readonly shareMs: number,
    readonly failures: number,
  ) {
    this.reply = new Reply(call.query);
  }
}
