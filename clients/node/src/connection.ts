import type { Request } from "./call.js";
import type { Socket } from "node:net";
import type { Config, Endpoint } from "./options.js";
import { Lines, NotFlakedError, parseRefusal, type Refusal } from "./protocol.js";
import { inWords, openSocket } from "./socket.js";

/** Learns what becomes of requests. */
export interface Listener {
  answered(request: Request): void;
  refused(request: Request, refusal: Refusal): void;
  /** The node is the first one that has answered: it has decided which cluster the client wants. */
  decided?(): void;
  /** Without an error, the node had closed an idle connection. `hurried`: it had less than `nodeTimeoutMs`. */
  lost(requests: Request[], error: Error | undefined, hurried: boolean): void;
}

/** One connection to a node. Requests are pipelined. */
export class Connection {
  ended = false;
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  readonly #lines = new Lines();
  readonly #connectBy: number;
  #ready = false;
  /** Requests before all others, AUTH and WORKER, and those of them that wait for replies. */
  readonly #greeting: string[];
  readonly #greeted: string[] = [];
  #unsent: Request[] = [];
  /** Requests that were sent, in order. Those before `#first` are finished. */
  #sent: Request[] = [];
  #first = 0;
  #answeredAt = 0; // when the last reply was complete
  /** Whether a request was ever answered, and whether nothing has arrived since requests wait. */
  #proven = false;
  #quiet = true;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;

  constructor(
    private readonly endpoint: Endpoint,
    private readonly config: Config,
    private readonly listener: Listener,
    /** The requests ask for nothing but the cluster. */
    comparing = false,
  ) {
    this.#greeting = config.token === undefined ? [] : [`AUTH ${config.token}`];
    if (!comparing) this.#greeting.push(config.identity.request);
    this.#connectBy = performance.now() + config.nodeTimeoutMs;
    this.#watch(this.#connectBy);
    this.#socket = openSocket(endpoint, config, () => {
      this.#ready = true;
      this.#flush();
    });
    this.#closed = new Promise((resolve) => this.#socket.once("close", () => resolve()));
    const closed = () => this.#fail(new Error(`connection closed by ${endpoint.name}`));
    this.#socket.on("end", closed).on("close", closed);
    // This listener stays for ever: an error without one would end the process.
    this.#socket.on("error", (error) => this.#fail(inWords(endpoint.name, error)));
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  /** Sends a request, together with all others of this turn of the event loop. */
  send(request: Request): void {
    if (this.#unsent.push(request) === 1 && this.#ready) process.nextTick(() => this.#flush());
    this.#watch(request.since + request.shareMs);
  }

  /** Closes the connection. Its requests are forgotten. */
  close(): Promise<void> {
    this.ended = true;
    clearTimeout(this.#timer);
    this.#unsent = this.#sent = [];
    this.#socket.destroy();
    return this.#closed;
  }

  #flush(): void {
    const requests = this.#unsent.splice(0).filter(({ call }) => !call.settled);
    if (this.ended || requests.length === 0) return;
    let text = this.#greeting.map((line) => `${line}\n`).join("");
    this.#greeted.push(...this.#greeting.splice(0));
    const now = performance.now();
    for (const request of requests) {
      request.since = now;
      text += `${request.call.query.text}\n`;
      this.#sent.push(request);
    }
    this.#socket.write(text, "latin1");
  }

  #receive(chunk: Buffer): void {
    try {
      this.#quiet = false;
      for (const line of this.#lines.add(chunk)) {
        if (this.ended) return;
        this.#take(line);
      }
      if (this.#lines.rest && this.#first === this.#sent.length) throw new NotFlakedError("what nobody asked for");
    } catch (error) {
      if (!(error instanceof NotFlakedError)) throw error;
      this.#fail(new Error(`${this.endpoint.name}: ${error.message}`, { cause: error }));
    }
  }

  #take(line: string): void {
    const greeting = this.#greeted.shift();
    if (greeting !== undefined) return this.#meet(greeting, line);
    const request = this.#sent[this.#first];
    if (request === undefined) throw new NotFlakedError("a line that answers no request");
    const outcome = request.reply.add(line);
    if (outcome === "more") return;
    this.#proven = true;
    this.#answeredAt = performance.now();
    this.#first++;
    if (this.#first === this.#sent.length) this.#quiet = true;
    if (this.#first === this.#sent.length || this.#first === 1024) {
      this.#sent.splice(0, this.#first);
      this.#first = 0;
    }
    if (outcome === "complete") this.listener.answered(request);
    else this.listener.refused(request, outcome);
  }

  /** Takes the reply to AUTH or WORKER. */
  #meet(greeting: string, line: string): void {
    if (greeting.startsWith("AUTH")) {
      if (line === "OK") return;
      const refusal = parseRefusal(line);
      for (const request of this.#drop()) this.listener.refused(request, refusal);
      return;
    }
    const { identity } = this.config;
    const unknown = identity.isUnknown;
    const error = identity.check(this.endpoint.name, line, false);
    if (error !== undefined) return this.#fail(error);
    if (unknown) this.listener.decided?.();
  }

  #requests(): Request[] {
    return [...this.#sent.slice(this.#first), ...this.#unsent];
  }

  /** Closes the connection, and returns its requests. */
  #drop(): Request[] {
    const requests = this.#requests();
    void this.close();
    return requests;
  }

  /** `hurried` is given if the node was silent. */
  #fail(error: Error, hurried?: boolean): void {
    if (this.ended) return;
    const requests = this.#drop();
    const wasIdle = hurried === undefined && this.#proven && this.#quiet;
    if (requests.length > 0) this.listener.lost(requests, wasIdle ? undefined : error, hurried ?? false);
  }

  /** Makes `#judge` run at a time, or earlier. */
  #watch(at: number): void {
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    // If the program kept the event loop busy, replies may have arrived meanwhile. setImmediate lets them be read.
    const judge = () => this.#judge();
    this.#timer = setTimeout(() => setImmediate(judge), Math.max(1, Math.ceil(at - performance.now()))).unref();
  }

  /** Ends the connection if the node was silent for too long. */
  #judge(): void {
    this.#timerAt = Infinity;
    if (this.ended) return;
    const now = performance.now();
    if (!this.#ready && now >= this.#connectBy)
      return this.#fail(new Error(`no connection to ${this.endpoint.name} in time`));
    let next = this.#ready ? Infinity : this.#connectBy;
    for (const request of this.#requests()) {
      const due = Math.max(request.since, this.#ready ? this.#answeredAt : 0) + request.shareMs;
      if (now >= due) return this.#tooLate(request.shareMs < this.config.nodeTimeoutMs);
      next = Math.min(next, due);
    }
    this.#watch(next);
  }

  #tooLate(hurried: boolean): void {
    if (this.#ready) return this.#fail(new Error(`no answer from ${this.endpoint.name} in time`), hurried);
    // The attempt goes on. Otherwise calls with less time than a connection takes would never get one.
    const requests = this.#unsent.splice(0);
    this.#watch(this.#connectBy);
    this.listener.lost(requests, new Error(`no connection to ${this.endpoint.name} in time`), true);
  }
}
