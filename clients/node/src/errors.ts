import type { Refusal } from "./protocol.js";

/**
 * Makes an `Error` whose fields arrive in another thread. Of what V8 itself marks as an error, `postMessage` and
 * `structuredClone` pass on only the message, the stack and the cause. Of any other object they pass on the fields.
 */
const CloneableError = function (this: Error, message: string) {
  this.name = (new.target as { prototype: Error }).prototype.name;
  this.message = message;
  Error.captureStackTrace(this, new.target);
} as unknown as new (message: string) => Error;
CloneableError.prototype = Object.create(Error.prototype, {
  // Programs that look for errors in this way find it.
  [Symbol.toStringTag]: { value: "Error" },
}) as Error;

/** The base of all errors of this package. Wrong arguments are a `TypeError` or a `RangeError` instead. */
export class FlakedError extends CloneableError {
  /** The code of the last refusal, such as `NOTREADY`, if a node refused. docs/protocol.md lists the codes. */
  readonly code: string | undefined;
  /** The reason in that refusal, such as `no-sequence` or `frozen`. */
  readonly reason: string | undefined;
  /** How long the node asks not to be asked again, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  /** @internal */
  constructor(message: string, refusal?: Pick<FlakedError, "code" | "reason" | "retryAfterMs">, cause?: Error) {
    super(message);
    if (cause) Object.defineProperty(this, "cause", { value: cause, configurable: true, writable: true });
    this.code = refusal?.code;
    this.reason = refusal?.reason;
    this.retryAfterMs = refusal?.retryAfterMs;
  }
}

/** What to do about a refusal that the client's settings cause. */
const advice = new Map([
  ["NOAUTH", ". Give the client the option token"],
  ["WRONGPASS", ". Correct the client's option token"],
]);

/** A node refused, and no other node would have helped. */
export class RefusedError extends FlakedError {
  /** @internal */
  constructor(
    /** The address of the node, as it was given to the client. */
    readonly address: string,
    refusal: Refusal,
    /** What the node said after the code. It is for people and may change. */
    readonly text: string = refusal.text,
    message = `${address} answered -${refusal.code} ${text}`.trimEnd() + (advice.get(refusal.code) ?? ""),
  ) {
    super(message, refusal);
  }
}

/** No node answered in time. `cause` is the last refusal (a {@link RefusedError}) or error of the network. */
export class UnavailableError extends FlakedError {}

/** The client was closed before or during the call. */
export class ClosedError extends FlakedError {}

// Not fields, so that stack traces begin with the names.
FlakedError.prototype.name = "FlakedError";
RefusedError.prototype.name = "RefusedError";
UnavailableError.prototype.name = "UnavailableError";
ClosedError.prototype.name = "ClosedError";

/** Throws an error of a call again. Its stack trace then has the program's `await`, not the event of a socket. */
export function rethrow(error: unknown): never {
  if (error instanceof FlakedError) Error.captureStackTrace(error, rethrow);
  throw error;
}
