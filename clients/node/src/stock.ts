/** Values that were requested in advance. Times are those of `performance.now()`. */
export class Stock {
  /** In the order of their arrival. The values of each are in descending order. */
  #parcels: { values: bigint[]; asked: number }[] = [];
  #have = 0;
  /** Whether a request for the stock is under way. */
  #filling = false;

  constructor(
    private readonly size: number,
    private readonly maxAgeMs: number,
  ) {}

  /** Takes a value that is not too old. */
  take(now: number): bigint | undefined {
    for (;;) {
      const parcel = this.#parcels[0];
      if (parcel === undefined) return undefined;
      const value = now - parcel.asked <= this.maxAgeMs ? parcel.values.pop() : undefined;
      if (value !== undefined) {
        this.#have--;
        return value;
      }
      this.#have -= parcel.values.length;
      this.#parcels.shift();
    }
  }

  /** Returns how many values to request now, at most `most`. If it is not 0, `filled` must be called later. */
  lacks(most: number): number {
    if (this.#filling || this.#have > this.size / 2) return 0;
    this.#filling = true;
    return Math.min(this.size - this.#have, most);
  }

  /** Adds the values of a request, which was made at `asked`. There are none if it failed. */
  filled(values: bigint[], asked: number): void {
    this.#filling = false;
    this.#have += values.length;
    this.#parcels.push({ values: values.reverse(), asked });
  }
}
