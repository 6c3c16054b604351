/**
 * The equation (TF) in float64, for pages with the model inside:
 *
 *     Attn(X) = X + sum_h V_h X softmax(lambda_h (K_h X)^T (Q_h X))
 *     f(X)    = Attn(X) + W2 relu(W1 Attn(X) + b1 1^T) + b2 1^T
 *
 * A card is a Float64Array, column after column. Weights are sparse: an entry of 0 adds nothing to a sum, so it is left out.
 * The sums of a SUBLEQ machine are exact, so their order cannot change a bit; the order here is that of the rows.
 *
 * From loop to loop few columns change. A layer remembers the card that it saw last, and computes only what another entry can
 * change: products of columns that differ, and the softmax of columns that asked anew, or that a changed key could reach.
 * Every number is that of the formula, as if all had been computed.
 */
import { floats, whole } from "./base64.js";

/** exp of less than this is exactly 0 in float64. */
const FAR = -746;

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

  /** The product with column j of a card, into a place of its own. */
  columnTimes(card, j, product, into) {
    product.fill(0, into, into + this.rows);
    const from = j * this.columns;
    for (let e = 0; e < this.values.length; e++) {
      product[into + this.row[e]] += this.values[e] * card[from + this.column[e]];
    }
  }

  /** The product with a card: a matrix of this one's rows and the card's columns, column after column. */
  times(card) {
    const count = card.length / this.columns;
    const product = new Float64Array(this.rows * count);
    for (let j = 0; j < count; j++) this.columnTimes(card, j, product, j * this.rows);
    return product;
  }
}

/** What a card is remembered by: a copy, and the columns in which another differs from it. */
class Remembered {
  constructor(width) {
    this.width = width;
    this.card = null;
  }

  /** The columns that differ from the last card, all of them the first time; the card is remembered from now on. */
  differing(card) {
    const { width } = this;
    const n = card.length / width;
    if (this.card?.length !== card.length) {
      this.card = card.slice();
      return [...Array(n).keys()];
    }
    const found = [];
    const before = this.card;
    for (let at = 0; at < card.length; at++) {
      if (card[at] !== before[at]) {
        const j = Math.floor(at / width);
        found.push(j);
        before.set(card.subarray(j * width, (j + 1) * width), j * width);
        at = (j + 1) * width - 1;
      }
    }
    return found;
  }
}

/** A head, and what it computed for the last card. */
class Head {
  constructor({ key, query, value, temperature }) {
    Object.assign(this, { key: new Sparse(key), query: new Sparse(query), value: new Sparse(value), temperature, n: 0 });
    this.used = [...new Set(this.value.row)];
  }

  /** Compute what differs: `changed` are the columns in which the card is another than before. Into `dirty` go those that get another sum. */
  look(card, changed, dirty) {
    const n = card.length / this.value.columns;
    const { key, query, value } = this;
    if (this.n !== n) {
      Object.assign(this, { n, keys: key.times(card), queries: query.times(card), values: value.times(card), near: Array(n) });
      for (let j = 0; j < n; j++) {
        this.near[j] = this.weigh(j);
        dirty.add(j);
      }
      return;
    }
    const [asked, offered, given] = [new Set(), [], new Set()];
    for (const j of changed) {
      if (this.renew(query, "queries", card, j)) asked.add(j);
      if (this.renew(key, "keys", card, j)) offered.push(j);
      if (this.renew(value, "values", card, j)) given.add(j);
    }
    for (let j = 0; j < n; j++) {
      const near = this.near[j];
      if (asked.has(j) || this.isReached(j, near, offered)) this.near[j] = this.weigh(j);
      else if (given.size && near.columns.some((i) => given.has(i))) near.sum = null;
      else continue;
      dirty.add(j);
    }
  }

  /** Compute a column of a product again; whether it is another than before. */
  renew(matrix, name, card, j) {
    const size = matrix.rows;
    const before = this[name].slice(j * size, (j + 1) * size);
    matrix.columnTimes(card, j, this[name], j * size);
    const after = this[name];
    return before.some((entry, i) => entry !== after[j * size + i]);
  }

  /** Whether a key that changed had a weight in column j, or may have one now. */
  isReached(j, { columns, most }, offered) {
    return offered.some((i) => columns.includes(i) || !(this.temperature * this.score(i, j) - most < FAR));
  }

  /** (K X)_i . (Q X)_j */
  score(i, j) {
    const size = this.key.rows;
    let sum = 0;
    for (let k = 0; k < size; k++) sum += this.keys[i * size + k] * this.queries[j * size + k];
    return sum;
  }

  scores(j) {
    const found = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) found[i] = this.score(i, j);
    return found;
  }

  /** The softmax of column j: the columns whose weight need not be 0, and their weights. The largest score is taken off first. */
  weigh(j) {
    const { n, temperature } = this;
    const scores = this.scores(j);
    let most = -Infinity;
    for (let i = 0; i < n; i++) most = Math.max(most, temperature * scores[i]);
    const columns = [];
    const weights = [];
    let sum = 0;
    for (let i = 0; i < n; i++) {
      const below = temperature * scores[i] - most;
      if (below < FAR) continue;
      const weight = Math.exp(below);
      columns.push(i);
      weights.push(weight);
      sum += weight;
    }
    return { columns, weights: weights.map((weight) => weight / sum), most, sum: null };
  }

  /** The sum of columns by their weights, in the rows that are used. */
  mixed(j) {
    const near = this.near[j];
    if (near.sum) return near.sum;
    const sum = new Float64Array(this.used.length);
    near.columns.forEach((i, place) => {
      const weight = near.weights[place];
      if (weight !== 0) this.used.forEach((row, u) => { sum[u] += this.values[i * this.value.rows + row] * weight; });
    });
    near.sum = sum;
    return sum;
  }
}

/** Add a bias to every column. */
function addTo(column, bias) {
  bias.row.forEach((row, e) => { column[row] += bias.values[e]; });
}

class Layer {
  constructor({ heads, w1, b1, w2, b2 }) {
    this.heads = heads.map((head) => new Head(head));
    this.w1 = new Sparse(w1);
    this.b1 = new Sparse(b1);
    this.w2 = new Sparse(w2);
    this.b2 = new Sparse(b2);
    this.width = this.w2.rows;
    this.attended = new Remembered(this.width);
    this.fed = new Remembered(this.width);
    /** Columns whose sums are others than those of `between`, the last Attn(X). */
    this.dirty = new Set();
    this.between = this.after = new Float64Array(0);
  }

  /** Bring what the heads remember to a card. */
  look(card) {
    const changed = this.attended.differing(card);
    for (const j of changed) this.dirty.add(j);
    for (const head of this.heads) head.look(card, changed, this.dirty);
  }

  /** How much column j takes from column i, where that is not 0: `near[j]` has columns and weights. */
  attention(card, number) {
    this.look(card);
    return this.heads[number];
  }

  /** Attn(X). It is kept, and changes with the next call. */
  attend(card) {
    this.look(card);
    const { width } = this;
    if (this.between.length !== card.length) this.between = new Float64Array(card.length);
    for (const j of this.dirty) {
      this.between.set(card.subarray(j * width, (j + 1) * width), j * width);
      for (const head of this.heads) {
        const sum = head.mixed(j);
        for (let u = 0; u < sum.length; u++) this.between[j * width + head.used[u]] += sum[u];
      }
    }
    this.dirty.clear();
    return this.between;
  }

  /** What a head adds to one column. */
  added(card, number, column) {
    const head = this.attention(card, number);
    const found = new Float64Array(this.width);
    head.mixed(column).forEach((entry, u) => { found[head.used[u]] = entry; });
    return found;
  }

  /** X + W2 relu(W1 X + b1 1^T) + b2 1^T. It is kept, and changes with the next call. */
  feedForward(card) {
    const { width } = this;
    const units = new Float64Array(this.w1.rows);
    const column = new Float64Array(width);
    if (this.after.length !== card.length) this.after = new Float64Array(card.length);
    for (const j of this.fed.differing(card)) {
      this.w1.columnTimes(card, j, units, 0);
      addTo(units, this.b1);
      for (let at = 0; at < units.length; at++) units[at] = Math.max(units[at], 0);
      this.w2.columnTimes(units, 0, column, 0);
      for (let row = 0; row < width; row++) column[row] = card[j * width + row] + column[row];
      addTo(column, this.b2);
      this.after.set(column, j * width);
    }
    return this.after;
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
    return (moment % 2 ? layer.feedForward(card) : layer.attend(card)).slice();
  }

  /** The card after a whole loop. */
  loop(card) {
    return this.layers.reduce((now, layer) => layer.feedForward(layer.attend(now)), card).slice();
  }
}
