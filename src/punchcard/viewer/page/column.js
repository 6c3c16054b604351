/** The chosen column: when its cell changed, and what the last step did to it, formula by formula. */
import { columnName } from "./decode.js";
import { hint, make, pretty, split } from "./elements.js";

const MOST_ROWS = 400;

export class Column {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.open = new Set();
  }

  async content() {
    const { about, cell, moment, source } = this.view;
    if (moment === 0) {
      const punched = "The card as it was punched. Go one step on to see what a layer does to this column.";
      return [this.heading(columnName(about, cell.column)), hint(punched)];
    }
    const { name, formulas, host } = await source.explain(moment, cell.column);
    const { layer, stage } = split(moment - 1, about.layers.length);
    const differ = formulas.filter(({ before, after }) => before.some((entry, i) => entry !== after[i]));
    const same = formulas.filter((formula) => !differ.includes(formula));
    const rest = () => same.map(worded);
    return [this.heading(name),
      make("h4", {}, `What the ${stage ? "feed-forward" : "attention"} of layer ${layer + 1} did here`),
      host ? make("p", { class: "note" }, "The host wrote to this column between the loops.") : null,
      ...differ.map((formula, i) => this.formula(formula, `${layer}/${stage}/${i}`)),
      differ.length ? null : hint("Nothing in this column changed."),
      same.length ? this.more(`same ${layer}/${stage}`, `${same.length} more changed nothing`, rest) : null];
  }

  heading(name) {
    const seek = (forward, text, key) => make("button", { type: "button", "data-place": text, title: `${text} (${key})`,
      click: () => this.act.change(forward) }, text);
    return make("div", { class: "heading" }, make("h3", {}, name),
      make("p", {}, make("b", {}, this.view.cell.band), " in this column"),
      make("div", { class: "buttons" }, seek(false, "when did it change", "C"), seek(true, "next change", "c")));
  }

  /** A formula, and the numbers that it changed. */
  formula(formula, place) {
    const { rows, before, after, details } = formula;
    const changed = [...rows.keys()].filter((i) => before[i] !== after[i]);
    const rest = rows.length - changed.length;
    const lines = changed.slice(0, MOST_ROWS).map((i) => make("tr", { class: "changed" },
      make("th", { scope: "row" }, rows[i]), make("td", {}, pretty(before[i])), make("td", { class: "to" }, "→"),
      make("td", {}, pretty(after[i]))));
    const each = () => details.map((text, i) => make("p", { class: "formula" },
      make("b", {}, rows[i] ?? ""), make("code", {}, text)));
    return make("article", {}, worded(formula), make("table", { class: "numbers" }, make("tbody", {}, lines)),
      rest ? hint(`${rest} other ${rest === 1 ? "row is" : "rows are"} as before`) : null,
      details.length ? this.more(`details ${place}`, "row by row", each) : null);
  }

  /** Something that opens, and stays open from step to step. */
  more(place, title, content) {
    const element = make("details", { open: this.open.has(place) }, make("summary", { "data-place": place }, title));
    const fill = () => { if (element.open && element.childElementCount === 1) element.append(...content()); };
    element.addEventListener("toggle", () => {
      this.open[element.open ? "add" : "delete"](place);
      fill();
    });
    fill();
    return element;
  }
}

function worded({ kind, text }) {
  const sort = make("span", { class: "kind" }, kind === "attend" ? "head" : "relu");
  return make("p", { class: "formula" }, sort, make("code", {}, text));
}
