import { connect, isIP, type Socket } from "node:net";
import * as tls from "node:tls";
import type { Config, Endpoint } from "./options.js";

/** Starts a connection. It is unref'ed: the timers of waiting calls keep the process alive, and nothing else does. */
export function openSocket(endpoint: Endpoint, config: Config, onReady: () => void): Socket {
  const socket = start(endpoint, config);
  // Firewalls forget connections that are idle for some minutes.
  socket.setNoDelay(true).setKeepAlive(true, 60_000).unref();
  return socket.once(socket instanceof tls.TLSSocket ? "secureConnect" : "connect", () => {
    socket.unref(); // an attempt at another address of the host has another handle
    onReady();
  });
}

function start(endpoint: Endpoint, config: Config): Socket {
  if ("path" in endpoint) return connect({ path: endpoint.path });
  // Without autoSelectFamily, Node.js 18 asks ::1 alone for localhost.
  const options = { host: endpoint.host, port: endpoint.port, autoSelectFamily: true };
  if (config.tls === undefined) return connect(options);
  return tls.connect({ servername: isIP(options.host) ? "" : options.host, ...config.tls, ...options });
}

const words: Record<string, string> = {
  ECONNREFUSED: "connection refused by ADDRESS. Check that the node runs",
  ECONNRESET: "connection closed by ADDRESS",
  EPIPE: "connection closed by ADDRESS",
  ENOENT: "socket not found: ADDRESS. Check the path, and that the node runs",
  ENOTFOUND: "host name not found: ADDRESS. Check the address",
};

/** What OpenSSL says of a reply that is not TLS. It depends on the version. */
const notTLS = /wrong version number|packet length too long/;

/** Returns an error in plain words for an error of a socket, which becomes its cause. */
export function inWords(address: string, error: NodeJS.ErrnoException): Error {
  // The error for several addresses of one host has an empty message.
  const [first = error] = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [];
  let text = words[first.code ?? ""] ?? `ADDRESS: ${first.message.trim()}`;
  if (notTLS.test(text))
    text = "the node does not use TLS at ADDRESS. Correct the address, or leave out the option tls";
  text = text.replace("ADDRESS", () => address);
  return new Error(text, { cause: error });
}
