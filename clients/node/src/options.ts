import { isIP } from "node:net";
import { createSecureContext, type ConnectionOptions } from "node:tls";
import { Identity } from "./identity.js";

/** What is requested in advance. */
export interface PrefetchOptions {
  /**
   * How many IDs or values are requested in advance, 0 to 100,000, so that `next()` need not wait. Those that are left
   * at the end are lost. Do not use it for strict or ordered sequences: the order would be lost. Default: 0.
   */
  prefetch?: number | undefined;
  /** How long an ID or value that was requested in advance may be kept, in milliseconds. Default: 1000. */
  maxAgeMs?: number | undefined;
}

/** The settings of a {@link Client}. Prefetching is that of IDs. */
export interface ClientOptions extends PrefetchOptions {
  /** Nodes, asked in this order: `host:port`, `host` (port 7609) or `unix:/path`. Default: `["127.0.0.1:7609"]`. */
  addresses?: readonly string[] | undefined;
  /** The cluster's name or UUID. Nodes of others count as failed. Default: that of the first node that answers. */
  cluster?: string | undefined;
  /** The token, if the nodes ask for one. */
  token?: string | undefined;
  /** `true`, or options of `tls.connect`, if the nodes speak TLS. Unix sockets are always plain. */
  tls?: boolean | ConnectionOptions | undefined;
  /** The time limit of a call in milliseconds. Default: 5000. */
  timeoutMs?: number | undefined;
  /** How long a node may be silent before the next one is asked, in milliseconds. Default: 1000. */
  nodeTimeoutMs?: number | undefined;
}

/** The limits of one call. */
export interface CallOptions {
  /** Ends the call. It then fails with the signal's reason, and its reply is thrown away. */
  signal?: AbortSignal | undefined;
  /** The time limit of this call in milliseconds, in place of {@link ClientOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
}

/** The limits of one call for a value of a sequence, and its key. */
export interface SequenceCallOptions extends CallOptions {
  /**
   * For strict sequences only: a call with the same key gets the same value again, from any node, so that a call that
   * failed can be repeated without a gap. A letter, then letters, digits and `_ . : -`, at most 64 characters.
   */
  key?: string | undefined;
}

/** The names of options. The types make sure that none is missing. */
type Names<Options> = Record<keyof Options, true>;
export const prefetchNames: Names<PrefetchOptions> = { prefetch: true, maxAgeMs: true };
export const callNames: Names<CallOptions> = { signal: true, timeoutMs: true };
export const sequenceCallNames: Names<SequenceCallOptions> = { key: true, ...callNames };
const clientNames: Names<ClientOptions> = {
  addresses: true,
  cluster: true,
  token: true,
  tls: true,
  timeoutMs: true,
  nodeTimeoutMs: true,
  ...prefetchNames,
};

/** Throws a `TypeError` unless options are an object whose fields all have one of the names. `example` is a call. */
export function checkNames(options: unknown, names: Readonly<Record<string, true>>, example: string): void {
  // Arrays, promises and signals have tags of their own.
  if (Object.prototype.toString.call(options) !== "[object Object]") {
    throw new TypeError(`options must be an object. Write for example ${example}`);
  }
  for (const name of Object.keys(options as object)) {
    if (Object.hasOwn(names, name)) continue;
    const wrong = `${JSON.stringify(name)} is not one of the options ${Object.keys(names).join(", ")}`;
    throw new TypeError(`${wrong}. Write for example ${example}`);
  }
}

/** Where a node listens. `name` is the address as it was given. */
export type Endpoint = { name: string; path: string } | { name: string; host: string; port: number };

/** The settings of a client, checked. */
export type Config = Readonly<ReturnType<typeof checkOptions>>;

/** Returns the settings, or throws a `TypeError` or `RangeError`. */
export function checkOptions(options: ClientOptions) {
  checkNames(options, clientNames, 'new Client({ addresses: ["127.0.0.1:7609"] })');
  const { addresses = ["127.0.0.1:7609"], cluster, token } = options;
  if (!Array.isArray(addresses)) throw new TypeError('addresses must be an array, such as ["127.0.0.1:7609"]');
  if (addresses.length === 0) throw new RangeError("addresses is empty. Name a node, such as 127.0.0.1:7609");
  if (token !== undefined && !isText("token", token, /^[!-~]{1,256}$/)) {
    throw new RangeError("token must be 1 to 256 printable ASCII characters without blanks");
  }
  if (cluster !== undefined && !isText("cluster", cluster, /^[A-Za-z0-9._-]{1,64}$/)) {
    throw new RangeError("cluster must be a name or a UUID: 1 to 64 letters, digits and . _ -");
  }
  return {
    identity: new Identity(cluster),
    endpoints: addresses.map(parseAddress),
    token,
    tls: checkTLS(options.tls),
    timeoutMs: checkMs("timeoutMs", options.timeoutMs, 5000),
    nodeTimeoutMs: checkMs("nodeTimeoutMs", options.nodeTimeoutMs, 1000),
  };
}

/** The most that a timer of Node.js waits. */
const maxTimerMs = 2 ** 31 - 1;

/** Returns a time limit in milliseconds, or the default if there is none. */
export function checkMs(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (typeof value !== "number") throw new TypeError(`${name} must be a number of milliseconds`);
  if (value >= 1 && value <= maxTimerMs) return value;
  throw new RangeError(`${name} is ${value} and must be 1 to ${maxTimerMs} milliseconds`);
}

/** Returns a whole number from least to most, or throws. */
export function checkCount(name: string, value: number, least: number, most: number): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number`);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new RangeError(`${name} is ${value} and must be a whole number from ${least} to ${most}`);
}

/** Reports whether a string matches a pattern. A pattern alone takes `null` for the string "null". */
function isText(what: string, value: unknown, pattern: RegExp): boolean {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string`);
  return pattern.test(value);
}

export function checkName(name: string): string {
  const what = "the name of a sequence";
  if (isText(what, name, /^(?![0-9]+$)[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}$/)) return name;
  const rule =
    "must be 1 to 128 letters, digits and _ . : - { } /, begin with none of . : - } /, and not be digits alone";
  throw new RangeError(`${what}, ${JSON.stringify(name)}, ${rule}`);
}

export function checkKey(key: string): string {
  if (isText("key", key, /^[A-Za-z][A-Za-z0-9_.:-]{0,63}$/)) return key;
  const rule = "must begin with a letter, go on with letters, digits and _ . : -, and have at most 64 characters";
  throw new RangeError(`the key ${JSON.stringify(key)} ${rule}`);
}

function checkTLS(given: ClientOptions["tls"]): ConnectionOptions | undefined {
  if (given === undefined || given === false) return undefined;
  if (given !== true && typeof given !== "object") throw new TypeError("tls must be true, or options of tls.connect");
  const options = given === true ? {} : given;
  try {
    // Made once, because reading certificates takes longer than a connection.
    return { ...options, secureContext: options.secureContext ?? createSecureContext(options) };
  } catch (error) {
    throw new TypeError(`tls: ${(error as Error).message}. Correct the certificates or keys`, { cause: error });
  }
}

/** Returns the endpoint of an address. It looks up no host names. */
export function parseAddress(name: string): Endpoint {
  if (typeof name !== "string") throw new TypeError("an address must be a string, such as 127.0.0.1:7609");
  const wrong = (why: string) => new RangeError(`the address ${JSON.stringify(name)} ${why}`);
  if (name.startsWith("unix:")) {
    const path = name.slice("unix:".length);
    if (!path.startsWith("/")) throw wrong("must have an absolute path, as in unix:/run/flaked/flaked.sock");
    if (Buffer.byteLength(path) > 107) throw wrong("has a path of more than 107 bytes. Choose a shorter one");
    return { name, path };
  }
  if (name.includes("://")) throw wrong("is a URL. Write HOST:PORT");
  if (name.startsWith("/")) throw wrong(`is a path. For a unix socket write unix:${name}`);
  if (isIP(name) !== 0) return { name, host: name, port: 7609 };
  const match = /^(?:\[([^\]]*)\]|([^:[\]\s/]+))(?::([0-9]{1,5}))?$/.exec(name);
  const [, ipv6, host = ipv6, port = "7609"] = match ?? [];
  if (host === undefined || (ipv6 !== undefined && isIP(ipv6) !== 6)) {
    throw wrong("must be HOST:PORT, HOST, [IPv6]:PORT or unix:/PATH");
  }
  if (/^[0-9]+$/.test(host)) throw wrong(`has no host. Write HOST:PORT, such as 127.0.0.1:${host}`);
  if (Number(port) < 1 || Number(port) > 65535) throw wrong("has a wrong port. It must be 1 to 65535");
  return { name, host, port: Number(port) };
}
