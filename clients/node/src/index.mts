// The same code serves import and require, so that a program that does both has one class of each error.
export { bigintReplacer, Client, ClosedError, FlakedError, RefusedError, UnavailableError } from "./index.js";
export type * from "./index.js";
