/**
 * The equation (TF) in float64, for pages with the model inside:
 *
 *     Attn(X) = X + sum_h V_h X softmax(lambda_h (K_h X)^T (Q_h X))
 *     f(X)    = Attn(X) + W2 relu(W1 Attn(X) + b1 1^T) + b2 1^T
 *
 * A card is a Float64Array, column after column. Weights are sparse: an entry of 0 adds nothing to a sum, so it is left out.
 * The sums of a SUBLEQ machine are exact, so their order cannot change a bit; the order here is that of the rows.
 */
import { floats, whole } from "./base64.js";

/** A matrix by its entries that are not 0, in the order of their rows. */
export class Sparse {
  constructor({ shape, at, values }) {
    const [rows, columns] = shape;
    const places = whole(at);
    this.rows = rows;
    this.columns = columns;
    this.values = floats(values);
    this.row = places.map((place) => Math.floor(place / columns));
    this.column = places.map((place) => place % columns);
  }

  /** The product with a card: a matrix of this one's rows and the card's columns, column after column. */
  times(card) {
    const count = card.length / this.columns;
    const product = new Float64Array(this.rows * count);
    for (let j = 0; j < count; j++) {
      const into = j * this.rows;
      const from = j * this.columns;
      for (let e = 0; e < this.values.length; e++) {
        product[into + this.row[e]] += this.values[e] * card[from + this.column[e]];
      }
    }
    return product;
  }
}

/** The dot products of all columns of two matrices: entry (i, j) stands at j n + i. */
function dots(left, right, size) {
  const n = size ? left.length / size : 0;
  const found = new Float64Array(n * n);
  for (let j = 0; j < n; j++) {
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += left[i * size + k] * right[j * size + k];
      found[j * n + i] = sum;
    }
  }
  return found;
}

/** The softmax of each column of an n by n matrix times lambda. The largest entry is taken off first: nothing overflows. */
export function softmax(scores, temperature, n) {
  const weights = new Float64Array(n * n);
  for (let j = 0; j < n; j++) {
    let most = -Infinity;
    for (let i = 0; i < n; i++) most = Math.max(most, temperature * scores[j * n + i]);
    let sum = 0;
    for (let i = 0; i < n; i++) {
      const weight = Math.exp(temperature * scores[j * n + i] - most);
      weights[j * n + i] = weight;
      sum += weight;
    }
    for (let i = 0; i < n; i++) weights[j * n + i] /= sum;
  }
  return weights;
}

/** The sum of columns by their weights, in the rows that are used. */
function mixed(values, weights, used, width) {
  const sum = new Float64Array(width);
  weights.forEach((weight, i) => {
    if (weight !== 0) for (const row of used) sum[row] += values[i * width + row] * weight;
  });
  return sum;
}

/** Add a bias to every column. */
function addToAll(columns, bias) {
  for (let at = 0; at < columns.length; at += bias.rows) {
    bias.row.forEach((row, e) => { columns[at + row] += bias.values[e]; });
  }
}

class Layer {
  constructor({ heads, w1, b1, w2, b2 }) {
    this.heads = heads.map((head) => ({
      key: new Sparse(head.key), query: new Sparse(head.query), value: new Sparse(head.value), temperature: head.temperature,
    }));
    this.w1 = new Sparse(w1);
    this.b1 = new Sparse(b1);
    this.w2 = new Sparse(w2);
    this.b2 = new Sparse(b2);
  }

  /** (K X)^T (Q X), and how much column j takes from column i. */
  attention(card, number) {
    const head = this.heads[number];
    const n = card.length / head.value.columns;
    const scores = dots(head.key.times(card), head.query.times(card), head.key.rows);
    return { scores, weights: softmax(scores, head.temperature, n) };
  }

  /** Attn(X). */
  attend(card) {
    const attended = card.slice();
    this.heads.forEach(({ value }, number) => {
      const { rows: width } = value;
      const n = card.length / width;
      const { weights } = this.attention(card, number);
      const values = value.times(card);
      const used = [...new Set(value.row)];
      for (let j = 0; j < n; j++) {
        const sum = mixed(values, weights.subarray(j * n, (j + 1) * n), used, width);
        for (const row of used) attended[j * width + row] += sum[row];
      }
    });
    return attended;
  }

  /** What a head adds to one column. */
  added(card, number, column) {
    const { value } = this.heads[number];
    const n = card.length / value.rows;
    const weights = this.attention(card, number).weights.subarray(column * n, (column + 1) * n);
    return mixed(value.times(card), weights, [...new Set(value.row)], value.rows);
  }

  /** X + W2 relu(W1 X + b1 1^T) + b2 1^T. */
  feedForward(card) {
    const units = this.w1.times(card);
    addToAll(units, this.b1);
    for (let at = 0; at < units.length; at++) units[at] = Math.max(units[at], 0);
    const after = this.b1.rows ? this.w2.times(units) : new Float64Array(card.length);
    for (let at = 0; at < card.length; at++) after[at] = card[at] + after[at];
    addToAll(after, this.b2);
    return after;
  }
}

/** A model, and how it goes from one moment to the next. Moment 2 L loop + 2 layer + stage: see `page.js`. */
export class Model {
  constructor(data) {
    this.width = data.width;
    this.layers = data.layers.map((layer) => new Layer(layer));
  }

  /** The card of moment + 1, from that of a moment. */
  step(card, moment) {
    const layer = this.layers[Math.floor(moment / 2) % this.layers.length];
    return moment % 2 ? layer.feedForward(card) : layer.attend(card);
  }
}
