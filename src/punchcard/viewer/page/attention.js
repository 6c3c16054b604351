/** The attention of a head: its formula, who takes from whom with figures, and the whole matrix of a small card. */
import { columnName } from "./decode.js";
import { asNumbers } from "./base64.js";
import { breakable, colours, hint, make, pretty, split } from "./elements.js";
import { moveText, moves } from "./arrows.js";
import { headButtons, headShown } from "./heads.js";

const MOST_ROWS = 400;
const MOST_CELL = 14;

export class Attention {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.known = new Map();
  }

  async content() {
    const { about, moment, attention } = this.view;
    const { layer, stage } = split(moment, about.layers.length);
    const title = make("h3", {}, `Layer ${layer + 1}, what its heads ${stage ? "took" : "are about to take"}`);
    const head = headShown(this.view);
    if (head === null) return [title, hint("This layer has no heads: it is a feed-forward alone.")];
    if (!attention) return [title, hint("The run has ended: nothing is taken from here on.")];
    const formula = (await this.formulas(layer))?.heads[head];
    const gap = formula?.gap == null ? "" : `, built for a gap of ${pretty(formula.gap)}`;
    const between = moves(attention);
    const own = attention.moves.filter(([from, to, weight]) => from === to && weight > 0.5).length;
    return [title, headButtons(this.view, (one) => this.act.head(one), head),
      formula?.about ? make("p", { class: "formula" }, make("code", {}, formula.about)) : null,
      hint(`temperature ${pretty(attention.temperature)}${gap}`),
      this.table(between.slice(0, MOST_ROWS)),
      hint(`${between.length ? "" : "No column takes from another. "}${own} take from themselves.`),
      attention.matrix ? this.matrix(attention) : null];
  }

  /** A layer's formulas, asked for once. */
  async formulas(layer) {
    if (!this.known.has(layer)) this.known.set(layer, await this.view.source.formulas(layer).catch(() => null));
    return this.known.get(layer);
  }

  table(between) {
    const { about, attention } = this.view;
    const heads = ["to", "from", "weight", "score", "gap"].map((name, i) => make("th", { scope: "col",
      class: i > 1 ? "figure" : "" }, name));
    const rows = between.map((move, i) => {
      const [from, to, ...figures] = move;
      const look = () => this.act.look([from, to]);
      const leave = () => this.act.look(null);
      return make("tr", { tabindex: 0, "data-place": `move ${i}`, title: moveText(about, attention, move),
        focus: look, blur: leave, pointerenter: look, pointerleave: leave },
      ...[to, from].map((column) => make("td", {}, breakable(columnName(about, column)))),
      ...figures.map((number) => make("td", { class: "figure" }, number === null ? "–" : pretty(number, 4))));
    });
    return make("table", { class: "moves" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows));
  }

  /** Every weight: across the columns that ask, down those that they take from. */
  matrix({ matrix, columns }) {
    const { about } = this.view;
    const weights = asNumbers(matrix);
    const n = columns.length;
    const room = Math.max(200, this.view.inspector.panel.clientWidth - 40);
    const size = Math.max(1, Math.min(MOST_CELL, Math.floor(room / n)));
    const canvas = make("canvas", { width: n * size * 2, height: n * size * 2, class: "matrix", tabindex: 0, role: "img",
      style: `width:${n * size}px;height:${n * size}px`, "data-place": "matrix",
      "aria-label": `The attention matrix, ${n} by ${n}. Arrow keys move over it.` });
    const told = make("p", { class: "hint", role: "status" }, "across: who asks; down: from whom");
    const paint = colours(this.view.element);
    let at = [0, 0];
    fill(canvas, weights, n, size, paint);
    const tell = (i, j) => {
      if (!(i >= 0 && j >= 0 && i < n && j < n)) return;
      at = [i, j];
      const pen = fill(canvas, weights, n, size, paint);
      pen.strokeStyle = paint.accent;
      pen.strokeRect(j * size + 0.5, i * size + 0.5, size - 1, size - 1);
      const [to, from] = [columns[j], columns[i]].map((column) => columnName(about, column));
      told.textContent = `${to} takes ${pretty(weights[j * n + i])} of ${from}`;
    };
    const cell = (offset) => Math.floor(offset / size);
    canvas.addEventListener("pointermove", (event) => tell(cell(event.offsetY), cell(event.offsetX)));
    canvas.addEventListener("focus", () => tell(...at));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      tell(at[0] + by[0], at[1] + by[1]);
    });
    return make("figure", {}, canvas, told);
  }
}

function fill(canvas, weights, n, size, paint) {
  const pen = canvas.getContext("2d");
  const side = size > 4 ? size - 1 : size;
  pen.setTransform(2, 0, 0, 2, 0, 0);
  pen.clearRect(0, 0, n * size, n * size);
  pen.fillStyle = paint.plus;
  for (let j = 0; j < n; j++) {
    for (let i = 0; i < n; i++) {
      if (weights[j * n + i] < 1e-3) continue;
      pen.globalAlpha = 0.1 + 0.9 * weights[j * n + i];
      pen.fillRect(j * size, i * size, side, side);
    }
  }
  pen.globalAlpha = 1;
  return pen;
}
