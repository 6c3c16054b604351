/** What is known of the chosen things, in tabs: values, a column, a head, weights, instructions. */
import { hint, make, refill } from "./elements.js";
import { Values } from "./values.js";
import { Column } from "./column.js";
import { Attention } from "./attention.js";
import { WeightTables } from "./weights.js";
import { Code } from "./code.js";

export const TABS = { values: ["Values", Values], column: ["Column", Column], attention: ["Attention", Attention],
  weights: ["Weights", WeightTables], code: ["Code", Code] };

export class Inspector {
  constructor(view, act) {
    this.view = view;
    const names = Object.keys(TABS);
    this.panels = Object.fromEntries(names.map((name) => [name, new TABS[name][1](view, act)]));
    this.tabs = names.map((name, i) => make("button", { type: "button", role: "tab", id: `${view.id}-${name}`,
      "aria-controls": `${view.id}-panel`, title: `${TABS[name][0]} (${i + 1})`,
      click: () => act.tab(name) }, this.titleOf(name)));
    this.panel = make("div", { class: "panel", role: "tabpanel", id: `${view.id}-panel`, tabindex: 0 });
    this.element = make("section", { class: "inspector", "aria-label": "Details" },
      make("div", { class: "tabs", role: "tablist", "aria-label": "Details" }, this.tabs), this.panel);
  }

  /** A machine whose instructions have an encoding shows a disassembly. */
  titleOf(name) {
    return name === "code" && this.view.about.program.instructions.some(({ word }) => word) ? "Disassembly" : TABS[name][0];
  }

  /** Without details, the values. */
  shown() { return this.view.details ? this.view.tab : "values"; }

  async draw() {
    const { moment } = this.view;
    const tab = this.shown();
    for (const button of this.tabs) {
      const chosen = button.id === `${this.view.id}-${tab}`;
      button.setAttribute("aria-selected", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `${this.view.id}-${tab}`);
    if (this.drawn !== tab) refill(this.panel, hint("…"));
    this.drawn = tab;
    const stale = () => moment !== this.view.moment || tab !== this.shown();
    try {
      const content = await this.panels[tab].content();
      if (!stale()) refill(this.panel, content);
    } catch (error) {
      if (!stale()) refill(this.panel, hint(error.message));
    }
  }
}
