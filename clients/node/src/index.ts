export { Client } from "./client.js";
export { ClosedError, FlakedError, RefusedError, UnavailableError } from "./errors.js";
export { bigintReplacer } from "./json.js";
export type { CallOptions, ClientOptions, PrefetchOptions, SequenceCallOptions } from "./options.js";
export type { Sequence } from "./sequence.js";
export type { Source } from "./source.js";
