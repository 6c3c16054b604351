/** Values by name, group by group. The table is made once; a step changes what is different. */
import { counterText } from "./decode.js";
import { hint, make, shortened } from "./elements.js";

/** So many letters of a name are shown; all of it on hover. */
const MOST_LETTERS = 40;

export class Values {
  constructor(view, act) {
    this.view = view;
    this.act = act;
  }

  async content() {
    const { about, state, before } = this.view;
    if (!about.shown.length) return [hint("This machine names no values.")];
    this.table ??= this.made();
    this.table.rows.forEach(({ row, cell, text, mark }, i) => {
      const changed = Boolean(before) && before.values[i] !== state.values[i];
      const isAddress = about.counter_base === 16 && about.shown[i].kind === "unsigned" && about.shown[i].group === about.counter?.group
        && /^\d+$/.test(state.values[i]);
      const value = isAddress ? counterText(about, state.values[i]) : about.shown[i].labels.length ? shortened(state.values[i], MOST_LETTERS) : state.values[i].replace(/-(?=\d)/g, "−").replace(/ ; /g, "\n"); // a matrix, row by row
      if (text.data !== value) text.data = value;
      if (mark.hidden === changed) mark.hidden = !changed;
      row.classList.toggle("changed", changed);
      const whole = value.endsWith("…") ? state.values[i] : "";
      cell.title = [whole, changed ? `before: ${before.values[i]}` : ""].filter(Boolean).join("; ");
    });
    return this.table.groups;
  }

  made() {
    const groups = new Map();
    const rows = this.view.about.shown.map((one, i) => {
      const text = new Text("");
      const mark = make("span", { class: "mark", role: "img", "aria-label": "changed", hidden: true }, "●");
      const cell = make("td", {}, text, mark);
      const name = make("button", { type: "button", "data-place": `value ${i}`, title: `${one.name}: show it on the card`,
        click: () => this.act.choose({ row: one.start, column: one.column }) }, one.name);
      const row = make("tr", {}, make("th", { scope: "row" }, name), cell);
      groups.set(one.group, [...(groups.get(one.group) ?? []), row]);
      return { row, cell, text, mark };
    });
    const tables = [...groups].map(([group, list]) => make("table", { class: "values" },
      make("caption", {}, group), make("tbody", {}, list)));
    return { rows, groups: tables };
  }
}
