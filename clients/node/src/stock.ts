/** Values of one request, in descending order. */
interface Parcel {
  readonly values: bigint[];
  readonly asked: number;
  /** By how much the wall clock was ahead when the values came. */
  readonly ahead: number;
}

/** Values that were requested in advance. Times are those of `performance.now()`. */
export class Stock {
  /** In the order of their arrival. */
  #parcels: Parcel[] = [];
  #have = 0;
  /** Whether a request for the stock is under way. */
  #filling = false;
  /** The wall clock when `next` last looked at the age of the first parcel. */
  #looked = Number.NaN;

  constructor(
    private readonly size: number,
    private readonly maxAgeMs: number,
    private readonly wallClock = Date.now,
  ) {}

  /** Takes a value as `take` does now. It looks at the age of the values once in a millisecond: a clock takes time. */
  next(): bigint | undefined {
    const wall = this.wallClock();
    const value = wall === this.#looked ? this.#parcels[0]?.values.pop() : undefined;
    if (value !== undefined) {
      this.#have--;
      return value;
    }
    this.#looked = wall;
    return this.take(performance.now());
  }

  /** Takes a value that is not too old. */
  take(now: number): bigint | undefined {
    for (;;) {
      const parcel = this.#parcels[0];
      if (parcel === undefined) return undefined;
      const value = this.#isFresh(parcel, now) ? parcel.values.pop() : undefined;
      if (value !== undefined) {
        this.#have--;
        return value;
      }
      this.#have -= parcel.values.length;
      this.#parcels.shift();
    }
  }

  /**
   * Returns a value that a call got at `now`, or a lower one of the stock, which keeps the other one then. The call
   * found the stock empty. Values that were on their way at that time have come before its own.
   */
  exchange(value: bigint, asked: number, now: number): bigint {
    const first = this.take(now);
    if (first === undefined) return value;
    const [low, high] = first < value ? [first, value] : [value, first];
    this.#add([high], asked, now);
    return low;
  }

  /** Returns how many values to request now, at most `most`. If it is not 0, `filled` must be called later. */
  lacks(most: number): number {
    if (this.#filling || this.#have > this.size / 2) return 0;
    this.#filling = true;
    return Math.min(this.size - this.#have, most);
  }

  /** Adds the values of a request, which was made at `asked` and answered at `now`. There are none if it failed. */
  filled(values: bigint[], asked: number, now: number): void {
    this.#filling = false;
    this.#add(values.reverse(), asked, now);
  }

  #add(values: bigint[], asked: number, now: number): void {
    this.#have += values.length;
    this.#parcels.push({ values, asked, ahead: this.wallClock() - now });
  }

  /** If the clocks have moved apart, the process was resumed from a snapshot, perhaps more than once. */
  #isFresh({ asked, ahead }: Parcel, now: number): boolean {
    return now - asked <= this.maxAgeMs && Math.abs(this.wallClock() - now - ahead) <= this.maxAgeMs;
  }
}
