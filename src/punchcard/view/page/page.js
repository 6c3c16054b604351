/**
 * The page that steps through a run: `mount(element, source)`.
 *
 * A run is a line of moments. With L layers, moment 2 L loop + 2 layer + stage is the card before that layer (stage 0) or
 * after its attention (stage 1). A source answers, always with a promise, what `punchcard.view.protocol` describes:
 *
 *     about()   state(moment)   attention(loop, layer, head)   explain(moment, column)
 *     weights(layer, {head} or {unit})   find(what, moment, {forward, ...})
 *
 * There are three sources. The server's page has no data and asks POST /api/NAME with the arguments as a JSON object.
 * A file has its data in <script type="application/json" id="punchcard-data">, made by `page.document(title, data)`:
 *
 *     {kind: "recorded", about, states: [state, ...], attention: {"loop/layer/head": reply}, weights: {"layer/head": reply}}
 *         A state has `entries`, or instead `changes`: [[row, column, value], ...] against the state before it in the list
 *         (then `columns` may be missing too). States that are not there cannot be shown.
 *     {kind: "computed", about, model, card, loops: [fact, ...], weights: {"layer/head": reply}}
 *         The model is inside, and the page computes every card from the equation. `model` and `card` come from `page/data.py`.
 *         Fact number i is what the loop's card does not say by itself: a state without its entries, for moment 2 L i, and
 *         `changes`: [[row, column, value], ...] that a host made to the card between the loops (input for a port).
 *         The last fact is the end of the run.
 */
import { bandsOf } from "./decode.js";
import { sourceOf } from "./sources.js";
import { button, make, split } from "./elements.js";
import { Card } from "./card.js";
import { SPEEDS, Time, UNITS } from "./time.js";
import { Program } from "./program.js";
import { Inspector, TABS, asNumbers } from "./inspector.js";
import { Help } from "./help.js";

const REMEMBERED = 64;
/** How often a page asks for the end of a run that is not known yet, in milliseconds. */
const EXPLORE = 600;
/** A wait of so many milliseconds is shown. */
const PATIENCE = 150;

/** How many views there are: a notebook may show several, and ids must differ. */
let views = 0;

class View {
  constructor(element, source, about) {
    const bands = bandsOf(about.layout);
    views += 1;
    Object.assign(this, { id: `punchcard-${views}`, element, source, about, bands, moment: 0, state: null, before: null, attention: null, head: 0, unit: "stage", speed: 2,
      playing: false, folding: true, tab: "values", breakpoints: new Set(), closed: new Set(), unitShown: null, looked: null, wanted: 0,
      cell: { row: bands[0].start, column: about.layout.regions[0].start, band: bands[0].name } });
    this.remembered = new Map();
    const act = Object.fromEntries(["go", "end", "step", "play", "find", "change", "choose", "look", "fold", "close", "tab", "head", "breakpoint", "hiddenUnit"]
      .map((name) => [name, (...given) => this[`on_${name}`](...given)]));
    act.unit = (unit) => { this.unit = unit; this.redraw(); };
    act.speed = (speed) => { this.speed = speed; this.redraw(); };
    this.card = new Card(this, act);
    this.time = new Time(this, act);
    this.program = new Program(this, act);
    this.inspector = new Inspector(this, act);
    this.help = new Help();
    this.note = make("p", { class: "note", role: "alert", hidden: true });
    const facts = Object.entries(about.facts ?? {}).map(([name, fact]) => `${name}: ${fact}`).join("\n");
    const header = make("header", {}, make("h1", {}, about.program.name), make("p", { title: facts }, about.title), this.note, button("?", "Keys", "?", () => this.help.toggle()));
    element.classList.add("punchcard");
    element.tabIndex = -1;
    element.replaceChildren(header, this.time.element, make("main", {}, this.program.element, this.card.element, this.inspector.element), this.help.element);
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** The state at a moment, from the last ones or from the source. */
  async fetch(moment) {
    if (this.remembered.has(moment)) return this.remembered.get(moment);
    const reply = await this.source.state(moment, { columns: [this.cell.column] });
    const state = { ...reply, entries: asNumbers(reply.entries) };
    this.remembered.set(state.moment, state);
    if (this.remembered.size > REMEMBERED) this.remembered.delete(this.remembered.keys().next().value);
    return state;
  }

  async fetchAttention(moment) {
    const { loop, layer } = split(moment, this.about.layers.length);
    const { heads } = this.about.layers[layer];
    if (!heads.length) return null;
    return this.source.attention(loop, layer, Math.min(this.head, heads.length - 1)).catch(() => null);
  }

  /** Show a moment. Of several that were asked for at once, the last is shown. */
  async on_go(moment) {
    const ask = this.wanted = Math.max(0, moment);
    delete this.element.dataset.moment;
    const waiting = setTimeout(() => this.element.setAttribute("aria-busy", "true"), PATIENCE);
    try {
      const state = await this.fetch(ask);
      const attention = state.ended && state.stage === 0 && state.layer === 0 ? null : await this.fetchAttention(state.moment);
      if (ask !== this.wanted) return;
      const before = state.moment > 0 ? this.remembered.get(state.moment - 1) ?? this.state : null;
      this.tell(state.message);
      Object.assign(this, { state, moment: state.moment, attention, before, looked: null });
      this.known = Math.max(this.known ?? 0, state.known_loops ?? 0);
      this.wanted = state.moment;
      await this.redraw();
    } catch (error) {
      this.tell(error.message);
      this.wanted = this.moment;
      this.playing = false;
    } finally {
      clearTimeout(waiting);
      if (this.wanted === this.moment) {
        this.element.removeAttribute("aria-busy");
        this.element.dataset.moment = this.moment; // says that all of it is shown
      }
    }
  }

  redraw() {
    if (!this.state) return;
    this.time.draw();
    this.program.draw();
    this.card.draw();
    return this.inspector.draw();
  }

  /** A line for the person: a fault, or what could not be done. */
  tell(message) {
    this.note.hidden = !message;
    this.note.textContent = message ?? "";
  }

  /** The moment that a step from another leads to. A layer without heads has no attention to stop at. */
  after(moment, by, unit) {
    const layers = this.about.layers.length;
    const size = { stage: 1, layer: 2, loop: 2 * layers }[unit];
    const to = by > 0 ? (Math.floor(moment / size) + 1) * size : (Math.ceil(moment / size) - 1) * size;
    const { layer, stage } = split(Math.max(0, to), layers);
    return stage === 1 && !this.about.layers[layer].heads.length ? to + Math.sign(by) : Math.max(0, to);
  }

  on_step(by, unit = this.unit) { return this.on_go(this.after(this.wanted, by, unit)); }

  async on_end() { await this.on_find("halt", true); }

  on_play() {
    this.playing = !this.playing;
    this.redraw();
    if (this.playing) this.run();
  }

  async run() {
    while (this.playing && this.element.isConnected) {
      const begun = performance.now();
      const { moment } = this;
      await this.on_step(1);
      const { program_counter: at, layer, stage } = this.state;
      const stop = layer === 0 && stage === 0 && this.breakpoints.has(at);
      if (this.moment === moment || this.state.ended || stop) this.playing = false;
      await new Promise((done) => { setTimeout(done, Math.max(0, 1000 / SPEEDS[this.speed] - performance.now() + begun)); });
    }
    this.redraw();
  }

  async on_find(what, forward, more = {}) {
    const names = { halt: "end of the run", port: "input or output", branch: "branch", breakpoint: "breakpoint", change: "change of this cell" };
    if (what === "breakpoint" && !this.breakpoints.size) return this.tell("There is no breakpoint: click a line of the program, or press x.");
    delete this.element.dataset.moment;
    try {
      const { moment, searched } = await this.source.find(what, this.moment, { forward, ...(what === "breakpoint" ? { instructions: [...this.breakpoints] } : {}), ...more });
      if (moment === null) this.tell(`No ${names[what]} was found ${forward ? "after" : "before"} this moment${what === "halt" && forward && !this.state.ended ? `, up to loop ${searched}` : ""}.`);
      else await this.on_go(moment);
    } catch (error) {
      this.tell(error.message);
    } finally {
      if (this.wanted === this.moment) this.element.dataset.moment = this.moment;
    }
  }

  on_change(forward) { return this.on_find("change", forward, { rows: this.cell.band, column: this.cell.column }); }

  on_choose({ row = this.cell.row, column = this.cell.column }) {
    const band = this.bands.find((one) => row >= one.start && row < one.start + one.rows);
    this.cell = { row, column, band: band.name };
    this.redraw();
    this.card.reveal();
  }

  on_look(columns) {
    this.looked = columns;
    if (this.state) this.card.repaint();
  }

  on_fold() { this.folding = !this.folding; this.redraw(); }

  /** Fold a band to its line of numbers, or unfold it. */
  on_close(band) {
    this.closed[this.closed.has(band) ? "delete" : "add"](band);
    this.redraw();
  }

  on_tab(tab) { this.tab = tab; this.redraw(); }

  on_hiddenUnit(unit) { this.unitShown = unit; this.redraw(); }

  async on_head(head) {
    this.head = head;
    this.unitShown = null;
    this.attention = await this.fetchAttention(this.moment);
    this.redraw();
  }

  on_breakpoint(instructions) {
    const set = instructions.some((one) => this.breakpoints.has(one));
    for (const one of instructions) this.breakpoints[set ? "delete" : "add"](one);
    this.redraw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.element.open) return;
    const typing = event.target.matches("input:not([type=radio]), select, textarea");
    if (typing && (event.key !== "Escape")) return;
    const press = event.target.matches("button, summary, input[type=radio]") && (event.key === " " || event.key === "Enter" || event.key.startsWith("Arrow"));
    if (press) return;
    const done = this.keyed(event.key);
    if (!done) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook around the page has keys of its own
  }

  /** What a key does; false if nothing. */
  keyed(key) {
    const shift = key !== key.toLowerCase();
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const heads = this.about.layers[split(this.moment, this.about.layers.length).layer].heads.length;
    const here = this.state?.program_counter;
    const keys = {
      n: () => this.on_step(1), ".": () => this.on_step(1), p: () => this.on_step(-1), ",": () => this.on_step(-1), N: () => this.on_step(1, "loop"), P: () => this.on_step(-1, "loop"),
      " ": () => this.on_play(), "[": () => this.pace(-1), "]": () => this.pace(1), Home: () => this.on_go(0), End: () => this.on_end(), g: () => this.time.loop.select(),
      u: () => { this.unit = UNITS[(UNITS.indexOf(this.unit) + 1) % UNITS.length]; this.redraw(); }, h: () => this.on_find("halt", !shift), o: () => this.on_find("port", !shift),
      j: () => this.on_find("branch", !shift), k: () => this.on_find("breakpoint", !shift), c: () => this.on_change(!shift), f: () => this.on_fold(), z: () => this.on_close(this.cell.band),
      a: () => { if (heads) this.on_head((this.head + 1) % heads); }, x: () => { if (here !== null) this.on_breakpoint([here]); }, "?": () => this.help.toggle(),
      Escape: () => this.element.focus(),
    };
    if (arrows[key]) this.on_choose(this.card.neighbour(this.cell, ...arrows[key]));
    else if (TABS[Number(key) - 1]) this.on_tab(TABS[Number(key) - 1]);
    else if (keys[key] ?? keys[key.toLowerCase()]) (keys[key] ?? keys[key.toLowerCase()])();
    else return false;
    return true;
  }

  pace(by) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    this.redraw();
  }

  /** Ask, now and then, how far the run goes, until its end is known. A question of the person comes first. */
  async explore() {
    let pause = EXPLORE;
    while (this.element.isConnected && this.state.loops === null && this.source.explore) {
      await new Promise((done) => { setTimeout(done, pause); });
      if (this.wanted !== this.moment) continue;
      const begun = performance.now();
      const found = await this.source.explore().catch(() => null);
      if (!found) return;
      pause = Math.max(EXPLORE, performance.now() - begun);
      this.known = found.known_loops;
      this.state.loops = found.loops;
      this.time.draw();
    }
  }
}

/** Show the run of a source in an element. The promise is kept once the first card is painted. */
export async function mount(element, source) {
  try {
    const view = new View(element, source, await source.about());
    await view.on_go(0);
    view.explore();
    return view;
  } catch (error) {
    element.classList.add("punchcard");
    element.replaceChildren(make("p", { class: "note", role: "alert" }, error.message));
    return null;
  }
}

const root = document.getElementById("punchcard-view");
if (root) {
  const inside = document.getElementById("punchcard-data");
  const page = mount(root, sourceOf(inside && JSON.parse(inside.textContent))).then((view) => {
    if (window === window.parent) view?.element.focus(); // inside another page it would scroll that page
    return view;
  });
  // For tests, and for people who look at a run from the browser's console.
  root.view = page;
}
