/** What is known of the chosen things: values by name, a column and its formulas, the attention of a head, weights. */
import { floats } from "./base64.js";
import { columnName } from "./decode.js";
import { breakable, colours, make, pretty, refill, split } from "./elements.js";
import { moveText, moves } from "./arrows.js";

export const TABS = ["values", "column", "attention", "weights"];
const TITLES = { values: "Values", column: "Column", attention: "Attention", weights: "Weights" };
const MOST_ROWS = 400;

/** base64 of a server, or the numbers of a page with the model inside. */
export function asNumbers(given) {
  return typeof given === "string" ? floats(given) : given;
}

export class Inspector {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.tabs = TABS.map((tab, i) => make("button", { type: "button", role: "tab", id: `${view.id}-${tab}`, "aria-controls": `${view.id}-panel`,
      title: `${TITLES[tab]} (${i + 1})`, click: () => act.tab(tab) }, TITLES[tab]));
    this.panel = make("div", { class: "panel", role: "tabpanel", id: `${view.id}-panel`, tabindex: 0 });
    this.element = make("section", { class: "inspector", "aria-label": "Details" },
      make("div", { class: "tabs", role: "tablist", "aria-label": "Details" }, this.tabs), this.panel);
    this.open = new Set();
  }

  async draw() {
    const { tab } = this.view;
    this.tabs.forEach((button, i) => {
      button.setAttribute("aria-selected", TABS[i] === tab);
      button.tabIndex = TABS[i] === tab ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", `${this.view.id}-${tab}`);
    const asked = this.view.moment;
    if (this.drawn !== tab) refill(this.panel, make("p", { class: "hint" }, "…"));
    this.drawn = tab;
    try {
      const content = await this[tab]();
      if (asked === this.view.moment && tab === this.view.tab) refill(this.panel, content);
    } catch (error) {
      refill(this.panel, make("p", { class: "hint" }, error.message));
    }
  }

  /** Values by name, group by group. The table is made once; a step changes what is different. */
  async values() {
    const { about, state, before } = this.view;
    if (!about.shown.length) return [make("p", { class: "hint" }, "This machine names no values.")];
    this.table ??= this.valueTable();
    this.table.rows.forEach(({ row, cell, text, mark }, i) => {
      const changed = Boolean(before) && before.values[i] !== state.values[i];
      const value = state.values[i].replace(/-(?=\d)/g, "−");
      if (text.data !== value) text.data = value;
      if (mark.hidden === changed) mark.hidden = !changed;
      row.classList.toggle("changed", changed);
      cell.title = changed ? `before: ${before.values[i]}` : "";
    });
    return this.table.groups;
  }

  valueTable() {
    const groups = new Map();
    const rows = this.view.about.shown.map((one, i) => {
      const [text, mark] = [new Text(""), make("span", { class: "mark", role: "img", "aria-label": "changed", hidden: true }, "●")];
      const cell = make("td", {}, text, mark);
      const row = make("tr", {}, make("th", { scope: "row" }, make("button", { type: "button", "data-place": `value ${i}`, title: "Show it on the card",
        click: () => this.act.choose({ row: one.start, column: one.column }) }, one.name)), cell);
      groups.set(one.group, [...(groups.get(one.group) ?? []), row]);
      return { row, cell, text, mark };
    });
    return { rows, groups: [...groups].map(([group, list]) => make("table", { class: "values" }, make("caption", {}, group), make("tbody", {}, list))) };
  }

  /** The chosen column: when its cell changed, and what the last step did to it, formula by formula. */
  async column() {
    const { view } = this;
    const { cell, moment } = view;
    const reply = moment ? await view.source.explain(moment, cell.column) : { name: columnName(view.about, cell.column) };
    const seek = (forward, text, key) => make("button", { type: "button", "data-place": text, title: `${text} (${key})`, click: () => this.act.change(forward) }, text);
    const head = make("div", { class: "heading" }, make("h3", {}, reply.name), make("p", {}, make("b", {}, cell.band), " in this column"),
      make("div", { class: "buttons" }, seek(false, "when did it change", "C"), seek(true, "next change", "c")));
    if (moment === 0) return [head, make("p", { class: "hint" }, "The card as it was punched. Go one step on to see what a layer does to this column.")];
    const { layer, stage } = split(moment - 1, view.about.layers.length);
    const step = `${stage ? "feed-forward" : "attention"} of layer ${layer + 1}`;
    const differ = reply.formulas.filter(({ before, after }) => before.some((entry, i) => entry !== after[i]));
    const same = reply.formulas.filter((formula) => !differ.includes(formula));
    return [head, make("h4", {}, `What the ${step} did here`),
      reply.host ? make("p", { class: "note" }, "The host wrote to this column between the loops.") : null,
      ...differ.map((formula, i) => this.formula(formula, `${layer}/${stage}/${formula.text}/${i}`)),
      differ.length ? null : make("p", { class: "hint" }, "Nothing in this column changed."),
      same.length ? this.more(`same ${layer}/${stage}`, `${same.length} more left it as it was`, () => same.map((formula) => this.text(formula))) : null];
  }

  text({ kind, text }) {
    return make("p", { class: "formula" }, make("span", { class: "kind" }, kind === "attend" ? "head" : "relu"), make("code", {}, text));
  }

  formula(formula, place) {
    const { rows, before, after, details } = formula;
    const changed = [...rows.keys()].filter((i) => before[i] !== after[i]);
    const line = (i) => make("tr", { class: before[i] === after[i] ? "" : "changed" }, make("th", { scope: "row" }, rows[i]),
      make("td", {}, pretty(before[i])), make("td", { class: "to" }, "→"), make("td", {}, pretty(after[i])));
    const rest = rows.length - changed.length;
    return make("article", {}, this.text(formula), make("table", { class: "numbers" }, make("tbody", {}, changed.slice(0, MOST_ROWS).map(line))),
      rest ? make("p", { class: "hint" }, `${rest} other ${rest === 1 ? "row is" : "rows are"} as before`) : null,
      details.length ? this.more(`details ${place}`, "row by row", () => details.map((text, i) => make("p", { class: "formula" }, make("b", {}, rows[i] ?? ""), make("code", {}, text)))) : null);
  }

  /** Something that opens and stays open from step to step. */
  more(place, title, content) {
    const element = make("details", { open: this.open.has(place) }, make("summary", { "data-place": place }, title));
    const fill = () => { if (element.open && element.childElementCount === 1) element.append(...content()); };
    element.addEventListener("toggle", () => { this.open[element.open ? "add" : "delete"](place); fill(); });
    fill();
    return element;
  }

  /** Buttons for the heads of the layer of this moment. */
  heads(press, chosen) {
    const { about, moment } = this.view;
    const { layer } = split(moment, about.layers.length);
    return make("div", { class: "heads", role: "group", "aria-label": `Heads of layer ${layer + 1}` }, about.layers[layer].heads.map((_, head) => make("button", {
      type: "button", "aria-pressed": head === chosen, "data-place": `head ${head}`, click: () => press(head) }, `head ${head + 1}`)));
  }

  async attention() {
    const { about, moment, attention, head } = this.view;
    const { layer, stage } = split(moment, about.layers.length);
    const title = make("h3", {}, `Layer ${layer + 1}, ${stage ? "what its heads took" : "what its heads are about to take"}`);
    if (!attention) return [title, make("p", { class: "hint" }, "This layer has no heads: it is a feed-forward alone.")];
    const known = await this.formulas(layer);
    const between = moves(attention);
    const own = new Set(attention.moves.filter(([source, target, weight]) => source === target && weight > 0.5).map(([, target]) => target)).size;
    return [title, this.heads((number) => this.act.head(number), head),
      known?.heads[head]?.about ? make("p", { class: "formula" }, make("code", {}, known.heads[head].about)) : null,
      make("p", { class: "hint" }, `temperature ${pretty(attention.temperature)}${known?.heads[head]?.gap != null ? `, built for a gap of ${pretty(known.heads[head].gap)}` : ""}`),
      make("table", { class: "moves" }, make("thead", {}, make("tr", {}, ["to", "from", "weight", "score", "gap"].map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, between.slice(0, MOST_ROWS).map((move, i) => make("tr", { tabindex: 0, "data-place": `move ${i}`, title: moveText(about, attention, move),
          focus: () => this.act.look([move[0], move[1]]), blur: () => this.act.look(null), pointerenter: () => this.act.look([move[0], move[1]]), pointerleave: () => this.act.look(null) },
        make("td", {}, breakable(columnName(about, move[1]))), make("td", {}, breakable(columnName(about, move[0]))),
        ...move.slice(2).map((number) => make("td", { class: "figure" }, number === null ? "–" : pretty(number, 4))))))),
      make("p", { class: "hint" }, between.length ? `${own} columns take from themselves` : `No column takes from another; ${own} take from themselves.`),
      attention.matrix ? this.matrix(attention) : null];
  }

  async formulas(layer) {
    this.known ??= new Map();
    if (!this.known.has(layer)) this.known.set(layer, await this.view.source.formulas(layer).catch(() => null));
    return this.known.get(layer);
  }

  /** Every weight of a small card: a column of the picture is a column that asks. */
  matrix({ matrix, columns }) {
    const { about } = this.view;
    const weights = asNumbers(matrix);
    const n = columns.length;
    const size = Math.max(1, Math.min(14, Math.floor(Math.max(200, this.panel.clientWidth - 40) / n)));
    const canvas = make("canvas", { width: n * size * 2, height: n * size * 2, class: "matrix", style: `width:${n * size}px;height:${n * size}px`, tabindex: 0, role: "img",
      "data-place": "matrix", "aria-label": `The attention matrix, ${n} by ${n}. Arrow keys move over it.` });
    const pen = canvas.getContext("2d");
    const paint = colours(this.element);
    const told = make("p", { class: "hint", role: "status" }, "across: who asks; down: from whom");
    let at = [0, 0];
    const fill = () => {
      pen.setTransform(2, 0, 0, 2, 0, 0);
      pen.clearRect(0, 0, n * size, n * size);
      pen.fillStyle = paint.plus;
      for (let j = 0; j < n; j++) {
        for (let i = 0; i < n; i++) {
          if (weights[j * n + i] < 1e-3) continue;
          pen.globalAlpha = 0.1 + 0.9 * weights[j * n + i];
          pen.fillRect(j * size, i * size, size - (size > 4 ? 1 : 0), size - (size > 4 ? 1 : 0));
        }
      }
      pen.globalAlpha = 1;
    };
    const tell = (i, j) => {
      if (!(i >= 0 && j >= 0 && i < n && j < n)) return;
      at = [i, j];
      fill();
      pen.strokeStyle = paint.accent;
      pen.strokeRect(j * size + 0.5, i * size + 0.5, size - 1, size - 1);
      told.textContent = `${columnName(about, columns[j])} takes ${pretty(weights[j * n + i])} of ${columnName(about, columns[i])}`;
    };
    canvas.addEventListener("pointermove", (event) => tell(Math.floor(event.offsetY / size), Math.floor(event.offsetX / size)));
    canvas.addEventListener("focus", () => tell(...at));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      tell(at[0] + by[0], at[1] + by[1]);
    });
    fill();
    return make("figure", {}, canvas, told);
  }

  /** The weights of a head or of a hidden unit, by the names of rows. */
  async weights() {
    const { view } = this;
    const { layer } = split(view.moment, view.about.layers.length);
    const { hidden } = view.about.layers[layer];
    const unit = view.unitShown === null ? null : Math.min(view.unitShown, hidden - 1);
    const none = unit === null && !view.attention;
    const reply = none ? null : await view.source.weights(layer, unit === null ? { head: view.head } : { unit });
    const chooser = make("input", { type: "number", min: 1, max: hidden, value: unit === null ? "" : unit + 1, "data-place": "unit", "aria-label": `A hidden unit of layer ${layer + 1}, 1 to ${hidden}`,
      change: (event) => this.act.hiddenUnit(event.target.value === "" ? null : Math.max(0, Math.min(hidden - 1, Math.floor(event.target.value) - 1))) });
    return [make("h3", {}, `Layer ${layer + 1}`), this.heads((head) => this.act.head(head), unit === null ? view.head : null),
      hidden ? make("label", { class: "unit" }, "hidden unit", chooser, `of ${hidden}`) : null,
      ...(reply?.parts ?? []).map((part) => make("table", { class: "weights" }, make("caption", {}, part.name,
        part.bias === null ? "" : make("span", { class: "hint" }, ` bias ${pretty(part.bias)}`)), make("tbody", {}, part.nonzero.slice(0, MOST_ROWS).map(([made, from, weight]) => make("tr", {},
        make("td", {}, made), make("td", { class: "to" }, "←"), make("td", {}, from), make("td", { class: "figure" }, pretty(weight)))),
      part.nonzero.length > MOST_ROWS ? make("tr", {}, make("td", { colspan: 4 }, `and ${part.nonzero.length - MOST_ROWS} more`)) : null))),
      none ? make("p", { class: "hint" }, "This layer has no heads. Choose a hidden unit.") : null];
  }
}
