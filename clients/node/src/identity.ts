import { RefusedError } from "./errors.js";
import { NotFlakedError, parseRefusal } from "./protocol.js";

interface Cluster {
  readonly name: string;
  readonly uuid: string;
}

const inWords = ({ name, uuid }: Cluster) => `${name} (${uuid})`;

/** Which cluster a client wants, for its life: an address may be given to a node of another one. */
export class Identity {
  /** The addresses belong to two clusters, so all calls fail. */
  error: RefusedError | undefined;
  /** While the other nodes are asked for their clusters, replies wait for this. */
  comparing: Promise<unknown> | undefined;
  #pinned: Cluster | undefined;
  #pinnedBy = "";

  constructor(private readonly configured: string | undefined) {}

  /** Whether the first node that answers decides. */
  get isUnknown(): boolean {
    return this.#pinned === undefined && this.configured === undefined;
  }

  /** The request with which each connection begins, after AUTH. */
  get request(): string {
    return ["WORKER", this.#pinned?.uuid ?? this.configured ?? ""].join(" ").trimEnd();
  }

  /** Takes the reply of a node. Returns what is wrong. `comparing`: the addresses of the client are compared. */
  check(address: string, line: string, comparing: boolean): Error | undefined {
    const refusal = line.startsWith("-") ? parseRefusal(line) : undefined;
    if (refusal !== undefined && refusal.code !== "WRONGNODE") return new RefusedError(address, refusal);
    const field = (name: string) => new RegExp(`(?:^| )${name}=(\\S+)`).exec(line)?.[1];
    const cluster = { name: field("cluster") ?? "", uuid: field("cluster_uuid") ?? "" };
    if (cluster.uuid === "")
      return new Error(`${address}: ${new NotFlakedError(JSON.stringify(line.slice(0, 60))).message}`);
    if (cluster.uuid === "none")
      return new Error(`${address} has not joined its cluster yet. Ask it again in a moment`);
    if (refusal === undefined && this.#pinned === undefined) {
      this.#pinned = cluster;
      this.#pinnedBy = address;
    }
    const pinned = this.#pinned;
    if (refusal === undefined && pinned?.uuid === cluster.uuid) return undefined;
    const wrong = (text: string) => {
      const reason = "other-cluster";
      return new RefusedError(address, { code: "WRONGNODE", text, reason, retryAfterMs: undefined }, text, text);
    };
    if (comparing && pinned !== undefined) {
      const both = `${this.#pinnedBy} to ${inWords(pinned)} and ${address} to ${inWords(cluster)}`;
      this.error = wrong(
        `the addresses belong to two clusters: ${both}. Give nodes of one cluster, or name it with cluster`,
      );
    }
    const wanted = pinned ? inWords(pinned) : (this.configured ?? "");
    return wrong(`${address} belongs to cluster ${inWords(cluster)}, not to ${wanted}`);
  }
}
