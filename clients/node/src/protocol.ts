const maxLine = 4096;
const maxValue = 2n ** 63n - 1n;
const hourMs = 3_600_000;

/** The peer sent something that no flaked node sends. */
export class NotFlakedError extends Error {
  constructor(what: string) {
    super(`${what} is not a reply of a flaked node. Check the address`);
  }
}

/** Joins chunks and divides them into lines. */
export class Lines {
  rest = "";

  /** Returns the lines that the chunk completes, without their endings. */
  add(chunk: Buffer): string[] {
    // A byte is a character in latin1, so that no chunk can end within one.
    const lines = (this.rest + chunk.toString("latin1")).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > maxLine || lines.some((line) => line.length > maxLine)) {
      throw new NotFlakedError(`a line of more than ${maxLine} bytes`);
    }
    return lines;
  }
}

/** Returns the value in a text, or undefined if it is not one of at least `least`. */
export function parseValue(text: string, least: bigint): bigint | undefined {
  if (!/^(?:0|[1-9][0-9]{0,18})$/.test(text)) return undefined;
  const value = BigInt(text);
  return value >= least && value <= maxValue ? value : undefined;
}

/** An error reply of a node: `-CODE text`. */
export interface Refusal {
  readonly code: string;
  readonly text: string;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;
}

/** Returns the refusal in a line. */
export function parseRefusal(line: string): Refusal {
  const [, code, rest = ""] = /^-([A-Z]\S*)(?: (.*))?$/.exec(line.trimEnd()) ?? [];
  if (code === undefined) throw new NotFlakedError(JSON.stringify(line.slice(0, 60)));
  const text = Buffer.from(rest, "latin1").toString();
  const ms = Number(field(text, "retry_after_ms"));
  return { code, text, reason: field(text, "reason"), retryAfterMs: ms >= 0 ? Math.min(ms, hourMs) : undefined };
}

function field(text: string, name: string): string | undefined {
  return new RegExp(`(?:^|\\s)${name}=(\\S+)`).exec(text)?.[1];
}

/** A request of one line, and how its reply is read. */
export interface Query<T> {
  readonly text: string;
  /** The lines of a reply that is not a refusal. */
  readonly lines: number;
  readonly ofSequence: boolean;
  /** Appends the values in a line of the reply. Returns false if it is not such a line. */
  readonly accept: (line: string, values: bigint[]) => boolean;
  /** Returns the result of the call from all values. */
  readonly result: (values: bigint[]) => T;
}

/** Returns the query for one ID (verb `GET`) or one value of a sequence (`NEXT name`, `NEXT name key`). */
export function queryOne(verb: string): Query<bigint> {
  const ofSequence = verb !== "GET";
  const accept = (line: string, values: bigint[]) => {
    const value = parseValue(line, ofSequence ? 0n : 1n);
    return value !== undefined && values.push(value) > 0;
  };
  return { text: verb, lines: 1, ofSequence, accept, result: (values) => values[0] ?? 0n };
}

/** Returns the query for n IDs or values. */
export function queryMany(verb: string, n: number): Query<bigint[]> {
  return { ...queryOne(verb), text: n === 1 ? verb : `${verb} ${n}`, lines: n, result: (values) => values };
}

/** Returns the query for n values that follow each other. */
export function queryRange(name: string, n: number): Query<{ first: bigint; last: bigint }> {
  const accept = (line: string, values: bigint[]) => {
    const [first, last, ...more] = line.split(" ").map((word) => parseValue(word, 0n));
    if (first === undefined || last === undefined || more.length > 0 || last < first) return false;
    return values.push(first, last) > 0;
  };
  const result = ([first = 0n, last = 0n]: bigint[]) => ({ first, last });
  return { ...queryOne(`RANGE ${name} ${n}`), accept, result };
}

/** Asks whether the node would answer a `GET`. */
export const queryReady = { ...queryOne("READY"), accept: (line: string) => line === "OK" };

/** Asks which cluster answers. */
export const queryCluster = { ...queryOne("WORKER"), accept: (line: string) => !line.startsWith("-") };

/** Collects the lines of the reply to one request. */
export class Reply {
  readonly values: bigint[] = [];
  #missing: number;

  constructor(private readonly query: Query<unknown>) {
    this.#missing = query.lines;
  }

  /** Takes the next line. Returns "more", "complete", or the refusal that replaces the whole reply. */
  add(line: string): "more" | "complete" | Refusal {
    if (this.query.accept(line, this.values)) return --this.#missing === 0 ? "complete" : "more";
    if (this.#missing < this.query.lines) throw new NotFlakedError("a reply that a refusal cuts short");
    return parseRefusal(line);
  }
}
