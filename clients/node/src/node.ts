import type { Connection } from "./connection.js";
import { RefusedError } from "./errors.js";
import type { Endpoint } from "./options.js";

const firstPauseMs = 20;
const longestPauseMs = 1000;
/** The pause after a refusal that needs an operator, and the longest that a node can ask for. */
const operatorPauseMs = 5000;

/** A node, and whether it may be asked. Times are those of `performance.now()`. */
export class Node {
  connection: Connection | undefined;
  probe: Connection | undefined;
  healthy = true;
  /** It did not answer a request that had less than `nodeTimeoutMs`. It may be well. */
  slow = false;
  /** Until when it is not asked, if it is not healthy. */
  until = 0;
  lastError: Error | undefined;
  /** Counts failures, to recognise errors of requests that were under way at an earlier one. */
  failures = 0;
  #pauseMs = firstPauseMs;

  constructor(
    readonly endpoint: Endpoint,
    private readonly random = Math.random,
  ) {}

  /** Begins a pause. `hurried`: the node had less than `nodeTimeoutMs` to answer. */
  fail(error: Error, hurried: boolean, now: number): void {
    let pause = this.#pauseMs * (0.5 + this.random());
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
    if (needsOperator(error)) pause = operatorPauseMs;
    else if (error instanceof RefusedError) {
      pause = Math.min(Math.max(pause, error.retryAfterMs ?? 0), operatorPauseMs);
    }
    this.healthy = false;
    this.slow = hurried;
    this.until = now + pause;
    this.lastError = error;
    this.failures++;
  }

  restore(): void {
    this.healthy = true;
    this.slow = false;
    this.lastError = undefined;
    this.#pauseMs = firstPauseMs;
  }

  mayBeAsked(now: number): boolean {
    return this.healthy || this.slow || this.until <= now;
  }

  /** Nodes with a lower rank are asked first: healthy ones, slow ones, then the one whose pause ends first. */
  get rank(): number {
    return this.healthy ? 0 : this.slow ? 1 : 1 + this.until;
  }
}

/** Whether a node refuses until an operator acts. */
export function needsOperator(error: Error | undefined): boolean {
  if (!(error instanceof RefusedError)) return false;
  const { code, reason } = error;
  return (
    code === "NOAUTH" || code === "WRONGPASS" || code === "WRONGNODE" || (code === "EXHAUSTED" && reason === undefined)
  );
}

/** Returns the node to ask next, or undefined if all are in `except`. */
export function chooseNode(nodes: readonly Node[], except: ReadonlySet<Node>): Node | undefined {
  const allowed = nodes.filter((node) => !except.has(node));
  return allowed.reduce<Node | undefined>((best, node) => (best && best.rank <= node.rank ? best : node), undefined);
}
