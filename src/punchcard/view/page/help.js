/** The keys, and a panel that lists them. */
import { make } from "./elements.js";

export const KEYS = [
  ["Time", [["n or .", "next step"], ["p or ,", "back"], ["N, P", "a whole loop on, or back"], ["space", "play and pause"], ["[ ]", "slower, faster"],
    ["u", "a step is a half layer, a layer, a loop"], ["Home, End", "start and end of the run"], ["g", "go to a loop"]]],
  ["Search", [["h", "to the end of the run"], ["o", "to the next port: input or output"], ["j", "to the next branch taken"], ["k", "to the next breakpoint"],
    ["with shift", "the one before"], ["c, C", "when the chosen cell changes next, and when it did"]]],
  ["Card", [["arrows", "move from cell to cell"], ["f", "fold and unfold what is empty"], ["z", "fold and unfold the chosen band"], ["a", "the next head"], ["x", "breakpoint at the current line"]]],
  ["Page", [["1 2 3 4", "values, column, attention, weights"], ["tab", "to the next control, arrow or line"], ["?", "these keys"], ["Esc", "close"]]],
];

export class Help {
  constructor() {
    const close = make("button", { type: "button", class: "close", "aria-label": "Close", click: () => this.element.close() }, "×");
    this.element = make("dialog", { class: "help", "aria-label": "Keys" }, close, make("h2", {}, "Keys"), make("div", { class: "lists" }, KEYS.map(([title, keys]) => make("section", {},
      make("h3", {}, title), make("dl", {}, keys.flatMap(([key, about]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, about)]))))));
  }

  toggle() {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
