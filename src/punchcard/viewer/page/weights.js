/** The weights of a head or of a hidden unit, by the names of rows. */
import { hint, make, pretty, split } from "./elements.js";
import { headButtons, headShown } from "./heads.js";

const MOST_ROWS = 400;

export class WeightTables {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    /** The hidden unit that is shown; null: a head is. */
    this.unit = null;
  }

  async content() {
    const { view } = this;
    const { layer } = split(view.moment, view.about.layers.length);
    const { hidden } = view.about.layers[layer];
    const unit = this.unit === null || !hidden ? null : Math.min(this.unit, hidden - 1);
    const head = headShown(view);
    const none = unit === null && head === null;
    const reply = none ? null : await view.source.weights(layer, unit === null ? { head } : { unit });
    const press = (one) => {
      this.unit = null;
      this.act.head(one);
    };
    return [make("h3", {}, `Layer ${layer + 1}`), headButtons(view, press, unit === null ? head : null),
      hidden ? this.chooser(layer, hidden, unit) : null, ...(reply?.parts ?? []).map(table),
      none ? hint("This layer has no heads. Choose a hidden unit.") : null];
  }

  chooser(layer, hidden, unit) {
    const choose = ({ target }) => {
      const wanted = Math.floor(Number(target.value)) - 1;
      this.unit = target.value === "" ? null : Math.max(0, Math.min(hidden - 1, wanted));
      this.act.redraw();
    };
    const input = make("input", { type: "number", min: 1, max: hidden, value: unit === null ? "" : unit + 1,
      "data-place": "unit", "aria-label": `A hidden unit of layer ${layer + 1}, 1 to ${hidden}`, change: choose });
    return make("label", { class: "unit" }, "hidden unit", input, `of ${hidden}`);
  }
}

function table({ name, bias, nonzero }) {
  const rows = nonzero.slice(0, MOST_ROWS).map(([made, from, weight]) => make("tr", {}, make("td", {}, made),
    make("td", { class: "to" }, "←"), make("td", {}, from), make("td", { class: "figure" }, pretty(weight))));
  const more = nonzero.length - rows.length;
  const left = more ? make("tr", {}, make("td", { colspan: 4 }, `and ${more} more`)) : null;
  const caption = make("caption", {}, name, bias === null ? null : make("span", { class: "hint" }, ` bias ${pretty(bias)}`));
  return make("table", { class: "weights" }, caption, make("tbody", {}, rows, left));
}
