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
    /** Takes the values, or without them an error, which may be anything if a signal has it as its reason. */
    private readonly finish: (values: bigint[] | undefined, error: unknown) => void,
  ) {
    this.deadline = performance.now() + timeoutMs;
  }

  /** Makes this a call that a caller awaits, which the deadline or a signal ends. */
  await(expire: () => void, signal: AbortSignal | undefined): void {
    this.isAwaited = true;
    // The timer keeps the process alive while the call waits. If the program kept the event loop busy, the reply may
    // have arrived meanwhile: setImmediate lets it be read first.
    this.#timer = setTimeout(() => setImmediate(expire), Math.ceil(this.timeoutMs));
    if (signal !== undefined) this.#stopListening = listen(signal, this);
  }

  /** Ends the call with values, unless it has ended. */
  end(values: bigint[]): void {
    this.#settle(values, undefined);
  }

  /** Ends the call with an error, unless it has ended. */
  fail(error: unknown): void {
    this.#settle(undefined, error);
  }

  #settle(values: bigint[] | undefined, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.#timer);
    this.#stopListening?.();
    this.finish(values, error);
  }
}

/** The calls that each signal ends. They share a listener, because Node.js warns of a leak if there are more than ten. */
const listening = new WeakMap<AbortSignal, Set<Call>>();

/** Lets a signal end a call. Returns a function that undoes it. */
function listen(signal: AbortSignal, call: Call): () => void {
  const calls = listening.get(signal) ?? new Set<Call>();
  if (calls.size === 0) {
    listening.set(signal, calls);
    signal.addEventListener("abort", abort);
  }
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size === 0) signal.removeEventListener("abort", abort);
  };
}

function abort({ target }: Event): void {
  const signal = target as AbortSignal;
  for (const call of listening.get(signal) ?? []) call.fail(signal.reason);
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
