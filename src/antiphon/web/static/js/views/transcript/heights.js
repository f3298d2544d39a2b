// Heights of many rows: the offset of a row, and the row at an offset, in logarithmic time (a Fenwick tree).
// Pure.

export class Heights {
  #sums = new Float64Array(1024);
  #heights = [];

  get length() {
    return this.#heights.length;
  }

  get total() {
    return this.offset(this.length);
  }

  at(index) {
    return this.#heights[index];
  }

  push(height) {
    const place = this.#heights.push(height);
    if (place >= this.#sums.length) {
      const larger = new Float64Array(this.#sums.length * 2);
      larger.set(this.#sums);
      this.#sums = larger;
    }
    // A new node sums the rows of its range.
    let sum = height;
    for (let step = 1; step < (place & -place); step <<= 1) sum += this.#sums[place - step];
    this.#sums[place] = sum;
  }

  /** Keep only the first rows. Their sums include no later row. */
  truncate(length) {
    if (length < this.length) this.#heights.length = length;
  }

  set(index, height) {
    const change = height - this.#heights[index];
    if (change === 0) return 0;
    this.#heights[index] = height;
    for (let place = index + 1; place <= this.length; place += place & -place) this.#sums[place] += change;
    return change;
  }

  /** The offset of a row. */
  offset(index) {
    let sum = 0;
    for (let place = index; place > 0; place -= place & -place) sum += this.#sums[place];
    return sum;
  }

  /** The row at an offset; the last row for an offset below all rows. */
  find(top) {
    let index = 0;
    let left = top;
    let step = 1;
    while (step * 2 <= this.length) step *= 2;
    for (; step > 0; step >>= 1) {
      const next = index + step;
      if (next <= this.length && this.#sums[next] <= left) {
        index = next;
        left -= this.#sums[next];
      }
    }
    return Math.max(0, Math.min(index, this.length - 1));
  }
}
