/** The keys: what they are called, what they do, and a panel that lists them. */
import { make, split } from "./elements.js";
import { UNITS } from "./time.js";
import { TABS } from "./inspector.js";

const search = (what) => (view, key) => view.on_find(what, key === key.toLowerCase());
const cell = (right, down) => (view) => view.on_choose(view.card.neighbour(view.cell, right, down));

/** Groups of [how it is written, what it is for, {key: what it does}]; one without an action is only told. */
const KEYS = {
  Time: [
    ["n or .", "next step", { n: (view) => view.on_step(1), ".": (view) => view.on_step(1) }],
    ["p or ,", "back", { p: (view) => view.on_step(-1), ",": (view) => view.on_step(-1) }],
    ["N, P", "a whole loop on, or back", { N: (view) => view.on_step(1, "loop"), P: (view) => view.on_step(-1, "loop") }],
    ["space", "play and pause", { " ": (view) => view.on_play() }],
    ["[ ]", "slower, faster",
      { "[": (view) => view.on_speed(view.speed - 1), "]": (view) => view.on_speed(view.speed + 1) }],
    ["u", "a step is a half layer, a layer, a loop",
      { u: (view) => view.on_unit(UNITS[(UNITS.indexOf(view.unit) + 1) % UNITS.length]) }],
    ["Home, End", "start and end of the run", { Home: (view) => view.on_go(0), End: (view) => view.on_end() }],
    ["g", "go to a loop", { g: (view) => view.time.loop.select() }],
  ],
  Search: [
    ["h", "to the end of the run", { h: search("halt"), H: search("halt") }],
    ["o", "to the next port: input or output", { o: search("port"), O: search("port") }],
    ["j", "to the next branch taken", { j: search("branch"), J: search("branch") }],
    ["k", "to the next breakpoint", { k: search("breakpoint"), K: search("breakpoint") }],
    ["with shift", "the one before", {}],
    ["c, C", "when the chosen cell changes next, and when it did",
      { c: (view) => view.on_change(true), C: (view) => view.on_change(false) }],
  ],
  Card: [
    ["arrows", "move from cell to cell",
      { ArrowLeft: cell(-1, 0), ArrowRight: cell(1, 0), ArrowUp: cell(0, -1), ArrowDown: cell(0, 1) }],
    ["f", "fold and unfold what is empty", { f: (view) => view.on_fold() }],
    ["z", "fold and unfold the chosen band", { z: (view) => view.on_close(view.cell.band) }],
    ["w", "wide columns, with room for their numbers", { w: (view) => view.on_wide() }],
    ["t", "to a column by its number", { t: (view) => view.card.finder.select() }],
    ["a", "the next head", { a: (view) => view.on_head(nextHead(view)) }],
    ["x", "breakpoint at the current line", { x: (view) => view.on_breakpoint(current(view)) }],
  ],
  Page: [
    ["1 2 3 4 5", "values, column, attention, weights, code",
      Object.fromEntries(Object.keys(TABS).map((tab, i) => [String(i + 1), (view) => view.on_tab(tab)]))],
    ["tab", "to the next control, arrow or line", {}],
    ["d", "details: formulas, attention, weights, searches, speed", { d: (view) => view.on_details() }],
    ["?", "these keys", { "?": (view) => view.help.toggle() }],
    ["Esc", "close; back to the page", { Escape: (view) => view.element.focus() }],
  ],
};
const ACTIONS = Object.assign({}, ...Object.values(KEYS).flat().map(([, , actions]) => actions));

function nextHead({ about, moment, head }) {
  const { length } = about.layers[split(moment, about.layers.length).layer].heads;
  return length ? (head + 1) % length : head;
}

function current({ state }) {
  return state.program_counter === null ? [] : [state.program_counter];
}

/** Do what a key is for; false if it is for nothing here. */
export function press(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || view.help.element.open) return false;
  if (event.target?.matches("input:not([type=radio]), select, textarea") && event.key !== "Escape") return false;
  const own = event.key === " " || event.key === "Enter" || event.key.startsWith("Arrow");
  if (own && event.target?.matches("button, summary, input")) return false;
  const action = ACTIONS[event.key];
  if (action && !view.state) {
    view.pressed.push(event.key);
    return true;
  }
  action?.(view, event.key);
  return action !== undefined;
}

export class Help {
  constructor() {
    const close = make("button", { type: "button", class: "close", "aria-label": "Close",
      click: () => this.toggle() }, "×");
    const entry = ([key, about]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, about)];
    const list = ([title, keys]) => make("section", {}, make("h3", {}, title), make("dl", {}, keys.flatMap(entry)));
    this.element = make("dialog", { class: "help", "aria-label": "Keys" }, close, make("h2", {}, "Keys"),
      make("div", { class: "lists" }, Object.entries(KEYS).map(list)));
  }

  toggle() {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  }
}
