import { Call, Request } from "./call.js";
import { Connection, type Listener } from "./connection.js";
import { ClosedError, RefusedError, rethrow, UnavailableError } from "./errors.js";
import { chooseNode, needsOperator, Node } from "./node.js";
import { checkMs, type CallOptions, type Config } from "./options.js";
import { queryCluster, queryReady, type Query, type Refusal } from "./protocol.js";

/** The least time that a node has to answer. With less, a busy node would count as silent. */
const leastShareMs = 25;
/** How long a reply waits, at most, for the other nodes to say which cluster they belong to. */
const longestCompareMs = 500;
/** Reasons in the refusal of a sequence that neither another node nor a moment ends. */
const lasting = new Set(["no-sequence", "frozen", "wrong-mode", "no-right", "exhausted", "too-many"]);

/** Asks nodes, one connection to each, and another node when one fails. */
export class Pool {
  readonly #nodes: Node[];
  readonly #calls = new Set<Call>();
  /** Calls that wait for the end of a node's pause. */
  #waiting: Call[] = [];
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  closed = false;

  constructor(private readonly config: Config) {
    this.#nodes = config.endpoints.map((endpoint) => new Node(endpoint));
  }

  /** Makes a call. One for the stock does not wait for a pause, and does not keep the process alive. */
  call<T>(query: Query<T>, options: CallOptions, forStock = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const timeoutMs = checkMs("timeoutMs", options.timeoutMs, this.config.timeoutMs);
      if (this.closed) throw new ClosedError("the client is closed. Make a new Client");
      options.signal?.throwIfAborted();
      if (this.config.identity.error) throw this.config.identity.error;
      const call: Call = new Call(query, timeoutMs, (values, error) => {
        this.#calls.delete(call);
        if (!values) return reject(error);
        this.#compared(call.deadline, () => {
          const wrong = this.config.identity.error;
          return wrong ? reject(wrong) : resolve(query.result(values));
        });
      });
      if (!forStock) call.await(() => this.#giveUp(call, "answered"), options.signal);
      this.#calls.add(call);
      this.#dispatch(call);
    }).catch(rethrow);
  }

  /** Ends all connections. Calls fail with a {@link ClosedError}. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.#timer);
    for (const call of this.#calls) call.fail(new ClosedError("the client is closed. Make a new Client"));
    const connections = this.#nodes.flatMap(({ connection, probe }) => [connection, probe]);
    await Promise.all(connections.map(async (each) => each?.close()));
  }

  /** Gives a call to a node, or lets it wait for one. */
  #dispatch(call: Call): void {
    if (call.settled) return;
    const now = performance.now();
    this.#probe(now);
    const node = chooseNode(this.#nodes, call.refusedBy);
    if (node?.mayBeAsked(now)) this.#ask(node, call, now);
    else if (node === undefined || call.refusedBy.size > 0) this.#retryLater(call, now);
    else this.#waitFor(node, call);
  }

  #ask(node: Node, call: Call, now: number): void {
    let shareMs = this.config.nodeTimeoutMs;
    if (this.#nodes.some((other) => other !== node && other.healthy)) {
      // If this node stays silent, there is time left to ask another one.
      shareMs = Math.min(shareMs, Math.max((call.deadline - now) / 2, leastShareMs));
    }
    if (node.connection === undefined || node.connection.ended) {
      node.connection = new Connection(node.endpoint, this.config, this.#listener(node));
    }
    node.connection.send(new Request(call, shareMs, node.failures));
  }

  #listener(node: Node): Listener {
    return {
      answered: ({ call, reply }) => {
        this.#restore(node);
        call.end(reply.values);
      },
      decided: () => this.#compare(node),
      refused: (request, refusal) => this.#refused(node, request, refusal),
      lost: (requests, error, hurried) => {
        // The last one was sent when the node had failed most often.
        if (error !== undefined) this.#fail(node, error, hurried, requests.at(-1)?.failures);
        for (const { call } of requests) {
          call.lastError = error ?? call.lastError;
          this.#dispatch(call);
        }
      },
    };
  }

  /** Asks the nodes beside the first one that has answered which cluster they belong to. Replies wait for that. */
  #compare(first: Node): void {
    const { identity } = this.config;
    const others = this.#nodes.filter((node) => node !== first && node.healthy);
    if (others.length === 0) return;
    const all = Promise.all(others.map((node) => this.#askCluster(node)));
    identity.comparing = all.then(() => (identity.comparing = undefined));
  }

  #askCluster(node: Node): Promise<void> {
    const { identity, nodeTimeoutMs } = this.config;
    return new Promise((resolve) => {
      const accept = (line: string) => {
        const error = line.startsWith("-") ? undefined : identity.check(node.endpoint.name, line, true);
        if (error instanceof RefusedError) node.fail(error, false, performance.now());
        return queryCluster.accept(line);
      };
      const call = new Call({ ...queryCluster, accept }, nodeTimeoutMs, () => {
        void connection.close();
        resolve();
      });
      const end = () => call.end([]);
      const listener = { answered: end, refused: end, lost: end };
      const connection = new Connection(node.endpoint, this.config, listener, true);
      connection.send(new Request(call, nodeTimeoutMs, node.failures));
    });
  }

  /** Goes on when the nodes are compared, or after half of the time that is left. */
  #compared(deadline: number, then: () => void): void {
    const { comparing } = this.config.identity;
    if (comparing === undefined) return then();
    const timer = setTimeout(then, Math.min(longestCompareMs, Math.max(0, deadline - performance.now()) / 2));
    void comparing.then(() => {
      clearTimeout(timer);
      then(); // a second time changes nothing
    });
  }

  #refused(node: Node, { call, failures }: Request, refusal: Refusal): void {
    const { code, reason } = refusal;
    const error = new RefusedError(node.endpoint.name, refusal);
    const aboutSequence = call.query.ofSequence && reason !== undefined;
    const final = code === "ERR" || code === "NOPERM";
    if (final || (aboutSequence && (code !== "NOTREADY" || lasting.has(reason)))) return call.fail(error);
    call.lastError = error;
    if (aboutSequence) call.refusedBy.add(node);
    else this.#fail(node, error, false, failures);
    this.#dispatch(call);
  }

  /** Notes a failure. Errors of requests that were under way at an earlier failure change nothing. */
  #fail(node: Node, error: Error, hurried: boolean, failures: number | undefined): void {
    if (failures === node.failures) node.fail(error, hurried, performance.now());
  }

  #restore(node: Node): void {
    if (node.healthy) return;
    node.restore();
    this.#wake();
  }

  /** Lets a call wait for the end of a node's pause, or fails it if that is useless. */
  #waitFor(node: Node, call: Call): void {
    call.lastError ??= node.lastError;
    const hopeless = this.#nodes.every(({ lastError }) => needsOperator(lastError));
    if (hopeless || !call.isAwaited || node.until >= call.deadline) return this.#giveUp(call, "can answer");
    this.#waiting.push(call);
    if (node.until >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = node.until;
    this.#timer = setTimeout(() => this.#wake(), Math.ceil(node.until - performance.now())).unref();
  }

  /** Dispatches the calls that wait for a node. */
  #wake(): void {
    clearTimeout(this.#timer);
    this.#timerAt = Infinity;
    for (const call of this.#waiting.splice(0)) this.#dispatch(call);
  }

  /** Begins a call anew in a moment, because all nodes that may be asked have refused the sequence. */
  #retryLater(call: Call, now: number): void {
    const asked = call.lastError instanceof RefusedError ? (call.lastError.retryAfterMs ?? 0) : 0;
    const ms = Math.max(20, Math.min(asked, 1000));
    if (!call.isAwaited || now + ms >= call.deadline) return this.#giveUp(call, "can answer");
    call.refusedBy.clear();
    setTimeout(() => this.#dispatch(call), ms).unref();
  }

  #giveUp(call: Call, what: string): void {
    const error = call.lastError;
    const why = error?.message ?? `${this.#nodes.map(({ endpoint }) => endpoint.name).join(", ")} did not answer`;
    const text = `no flaked node ${what} within ${call.timeoutMs} ms: ${why}`;
    call.fail(new UnavailableError(text, error instanceof RefusedError ? error : undefined, error));
  }

  /** Asks failed nodes whether they are ready again, so that no call has to try. */
  #probe(now: number): void {
    if (!this.#nodes.some(({ healthy }) => healthy)) return;
    for (const node of this.#nodes) {
      if (!node.healthy && node.until <= now && node.probe === undefined) this.#startProbe(node, node.failures);
    }
  }

  #startProbe(node: Node, failures: number): void {
    const { nodeTimeoutMs } = this.config;
    const call = new Call(queryReady, nodeTimeoutMs, (values, error) => {
      void probe.close();
      node.probe = undefined;
      if (values) this.#restore(node);
      else this.#fail(node, error as Error, false, failures);
    });
    const probe = new Connection(node.endpoint, this.config, {
      answered: () => call.end([]),
      refused: (_, refusal) => call.fail(new RefusedError(node.endpoint.name, refusal)),
      lost: (_, error) => call.fail(error),
    });
    node.probe = probe;
    probe.send(new Request(call, nodeTimeoutMs, failures));
  }
}
