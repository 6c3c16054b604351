/** A view of a run: what is shown now, and what every button and key does. The parts of the page draw it. */
import { asNumbers } from "./base64.js";
import { bandsOf } from "./decode.js";
import { button, make, split } from "./elements.js";
import { Card } from "./card.js";
import { SPEEDS, Time } from "./time.js";
import { Program } from "./program.js";
import { Inspector } from "./inspector.js";
import { Help, press } from "./keys.js";

const REMEMBERED = 64;
/** How often a page asks for the end of a run that is not known yet, in milliseconds. */
const EXPLORE = 600;
/** A wait of so many milliseconds is shown. */
const PATIENCE = 150;
const ACTIONS = ["go", "end", "step", "play", "find", "change", "choose", "look", "fold", "close", "tab", "head",
  "breakpoint", "unit", "speed", "column", "wide", "details", "build"];
const SOUGHT = { halt: "end of the run", port: "input or output", branch: "branch", breakpoint: "breakpoint",
  change: "change of this cell" };

const NO_COUNTER = "This machine shows no program counter, so there are no branches and no breakpoints.";

/** How many views there are: a notebook may show several, and ids must differ. */
let views = 0;

export class View {
  constructor(element, source, about) {
    views += 1;
    this.id = `punchcard-${views}`;
    Object.assign(this, { element, source, about, bands: bandsOf(about.layout), layers: about.layers.length });
    // What is shown, and of which moment; `wanted` is the one that was asked for last.
    Object.assign(this, { moment: 0, wanted: 0, going: null, state: null, before: null, marks: [], attentions: [] });
    this.known = about.known_loops;
    // What the person chose.
    Object.assign(this, { head: 0, unit: "stage", speed: 2, playing: false, folding: true, wide: false, tab: "values",
      breakpoints: new Set(), closed: new Set(), looked: null, details: false });
    /** Keys that were pressed before the first card came. */
    this.pressed = [];
    const { counter, layout } = about;
    this.cell = this.cellAt(counter?.start ?? this.bands[0].start, counter?.column ?? layout.regions[0].start);
    this.remembered = new Map();
    const act = Object.fromEntries(ACTIONS.map((name) => [name, (...given) => this[`on_${name}`](...given)]));
    act.redraw = () => this.redraw();
    this.card = new Card(this, act);
    this.time = new Time(this, act);
    this.program = new Program(this, act);
    this.inspector = new Inspector(this, act);
    this.help = new Help();
    this.note = make("p", { class: "note", role: "alert", hidden: true });
    element.classList.add("punchcard");
    element.dataset.details = "false";
    element.tabIndex = -1;
    element.replaceChildren(this.header(), this.time.element, this.time.story,
      make("main", {}, this.program.element, this.card.element, this.inspector.element), this.help.element);
    element.addEventListener("keydown", (event) => {
      if (!press(this, event)) return;
      event.preventDefault();
      event.stopPropagation(); // a notebook around the page has keys of its own
    });
    // A button that was clicked with a pointer gives the focus back, so that space plays and pauses.
    element.addEventListener("click", ({ detail, target }) => {
      if (detail && target.closest("button") && !target.closest("dialog")) element.focus({ preventScroll: true });
    });
  }

  header() {
    const facts = Object.entries(this.about.facts ?? {}).map(([name, fact]) => `${name}: ${fact}`).join("\n");
    return make("header", {}, make("h1", {}, this.about.program.name), this.choices() ?? make("p", { title: facts }, this.about.title),
      this.note, button("?", "Keys", "?", () => this.help.toggle()));
  }

  /** Menus for the design and the sizes, where whoever answers can build another machine. */
  choices() {
    const { choices } = this.about;
    if (!choices?.length) return null;
    return make("div", { class: "choices", title: this.about.title }, choices.map(({ name, label, now, options }) => make("label", {},
      make("span", { class: "hint" }, label), make("select", { "aria-label": label, change: ({ target }) => this.on_build({
        [name]: options.find((one) => String(one) === target.value) }) }, options.map((one) => make("option", { value: one, selected: String(one) === String(now) },
        String(one)))))));
  }

  /** Ask for the same run on another machine; the page opens anew. */
  async on_build(choice) {
    const now = Object.fromEntries(this.about.choices.map(({ name, now: value }) => [name, value]));
    try {
      await this.source.build({ ...now, ...choice });
      this.reload();
    } catch (error) {
      this.tell(error.message);
    }
  }

  reload() { window.location.reload(); }

  on_details() {
    this.details = !this.details;
    this.element.dataset.details = this.details;
    this.redraw();
  }

  /** The attention of the chosen head. */
  get attention() { return this.attentions[Math.min(this.head, this.attentions.length - 1)] ?? null; }

  /** A cell of the card, with the band that it belongs to. */
  cellAt(row, column) {
    return { row, column, band: this.bands.find((one) => row >= one.start && row < one.start + one.rows).name };
  }

  /** The state at a moment, from the last ones or from the source. */
  async fetch(moment) {
    if (this.remembered.has(moment)) return this.remembered.get(moment);
    const reply = await this.source.state(moment, { columns: [this.cell.column] });
    Object.assign(this.about.column_names, reply.names);
    const state = { ...reply, entries: asNumbers(reply.entries) };
    this.remembered.set(state.moment, state);
    if (this.remembered.size > REMEMBERED) this.remembered.delete(this.remembered.keys().next().value);
    return state;
  }

  /** The attention of all heads in the layer of a moment; none where there is none. */
  async fetchAttention({ moment, ended }) {
    const { loop, layer } = split(moment, this.layers);
    if (ended) return [];
    const { heads } = this.about.layers[layer];
    return Promise.all(heads.map((_, head) => this.source.attention(loop, layer, head).catch(() => null)));
  }

  /** Show a moment. While one is on its way others only say where to go, so that a dragged slider asks for few. */
  async on_go(moment) {
    this.wanted = Math.max(0, moment);
    delete this.element.dataset.moment;
    this.going ??= this.travel();
    await this.going;
  }

  /** Show that the page is at work, if it takes long. */
  wait() { return setTimeout(() => this.element.setAttribute("aria-busy", "true"), PATIENCE); }

  async travel() {
    const waiting = this.wait();
    try {
      while (!await this.arrive(this.wanted)); // somebody wants to go on to another moment
    } catch (error) {
      Object.assign(this, { wanted: this.moment, playing: false });
      this.tell(error.message);
    } finally {
      this.going = null;
      clearTimeout(waiting);
      this.settle();
    }
  }

  /** Fetch a moment and show it; false if another was asked for meanwhile. */
  async arrive(ask) {
    const [found, coming] = await Promise.all([this.fetch(ask), this.fetchAttention({ moment: ask, ended: null })]);
    const attentions = found.moment === ask && !found.ended ? coming : await this.fetchAttention(found);
    if (ask !== this.wanted) return false;
    const before = this.stepFrom(found);
    const marks = (before && differing(before, found, this.about.layout.width)) ?? found.changed;
    const { moment } = found;
    Object.assign(this, { state: found, moment, wanted: moment, attentions, before, marks, looked: null });
    this.known = Math.max(this.known, found.known_loops);
    const beyond = moment < ask && !found.ended;
    this.tell(found.message ?? (beyond ? this.beyond() : null), beyond);
    await this.redraw();
    for (const key of this.pressed.splice(0)) press(this, new KeyboardEvent("keydown", { key }));
    return this.wanted === this.moment;
  }

  /** Say, on the element itself, that all that was asked for is shown. */
  settle() {
    if (this.wanted !== this.moment) return;
    this.element.removeAttribute("aria-busy");
    this.element.dataset.moment = this.moment;
  }

  /** The state that a step led from: the one shown, if it is at most a loop before; else that of the moment before. */
  stepFrom({ moment }) {
    const by = this.state ? moment - this.state.moment : 0;
    return by > 0 && by <= 2 * this.layers ? this.state : this.remembered.get(moment - 1) ?? null;
  }

  redraw() {
    if (!this.state) return null;
    this.time.draw();
    this.program.draw();
    this.card.draw();
    return this.inspector.draw();
  }

  /** What a recorded file says where it ends. */
  beyond() {
    const { first_loop: first = 0, loops, known_loops: last, all_loops: all } = this.about;
    const of = all ? ` of ${all.toLocaleString("en")}` : "";
    return `No later loop was recorded: this file holds loops ${first} to ${(loops ?? last).toLocaleString("en")}${of}.`;
  }

  /** A line for the person: a fault, or what could not be done; `calm` if nothing is wrong. */
  tell(message, calm = false) {
    this.note.classList.toggle("calm", calm);
    this.note.hidden = !message;
    this.note.textContent = message ?? "";
  }

  /** The moment that a step from another leads to. A layer without heads has no attention to stop at. */
  after(moment, by, unit) {
    const size = { stage: 1, layer: 2, loop: 2 * this.layers }[unit];
    const to = by > 0 ? (Math.floor(moment / size) + 1) * size : (Math.ceil(moment / size) - 1) * size;
    const { layer, stage } = split(Math.max(0, to), this.layers);
    return stage === 1 && !this.about.layers[layer].heads.length ? to + Math.sign(by) : Math.max(0, to);
  }

  on_step(by, unit = this.unit) { return this.on_go(this.after(this.wanted, by, unit)); }

  on_end() { return this.on_find("halt", true); }

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
      const { program_counter: at, layer, stage, ended } = this.state;
      const stop = layer === 0 && stage === 0 && this.breakpoints.has(at);
      if (this.moment === moment || ended || stop) this.playing = false;
      const left = 1000 / SPEEDS[this.speed] - performance.now() + begun;
      await new Promise((done) => { setTimeout(done, Math.max(0, left)); });
    }
    this.redraw();
  }

  async on_find(what, forward, more = {}) {
    const wanted = what === "breakpoint" ? { instructions: [...this.breakpoints] } : more;
    if (["branch", "breakpoint"].includes(what) && !this.about.counter) return this.tell(NO_COUNTER);
    if (wanted.instructions?.length === 0) return this.tell("There is no breakpoint: click a line, or press x.");
    delete this.element.dataset.moment;
    const waiting = this.wait();
    try {
      const { moment, searched } = await this.source.find(what, this.moment, { forward, ...wanted });
      const far = forward && searched < (this.state.loops ?? Infinity) ? `, up to loop ${searched.toLocaleString("en")}` : "";
      if (moment !== null) return await this.on_go(moment);
      return this.tell(`No ${SOUGHT[what]} was found ${forward ? "after" : "before"} this moment${far}.`);
    } catch (error) {
      return this.tell(error.message);
    } finally {
      clearTimeout(waiting);
      this.settle();
    }
  }

  on_change(forward) { return this.on_find("change", forward, { rows: this.cell.band, column: this.cell.column }); }

  on_choose({ row = this.cell.row, column = this.cell.column }) {
    this.cell = this.cellAt(row, column);
    this.redraw();
    this.card.reveal();
  }

  /** A column by its number, also one that was not shown so far. */
  async on_column(column) {
    const { columns } = this.about.layout;
    if (!(Number.isInteger(column) && column >= 0 && column < columns)) {
      return this.tell(`Column ${column}: the card has ${columns}, counted from 0.`);
    }
    this.cell = this.cellAt(this.cell.row, column);
    this.card.unfold(column);
    this.remembered.clear();
    await this.on_go(this.moment);
    if (!this.state.columns.includes(column)) return this.tell(`Column ${column} was not recorded.`);
    return this.card.reveal();
  }

  /** Two columns of an arrow that somebody looks at; null: nobody does any more. */
  on_look(columns) {
    this.looked = columns;
    if (this.state) this.card.repaint();
  }

  on_fold() { this.set({ folding: !this.folding }); }

  on_wide() { this.set({ wide: !this.wide }); }

  on_tab(tab) {
    if (!this.details) this.on_details();
    this.set({ tab });
  }

  on_unit(unit) { this.set({ unit }); }

  on_speed(speed) { this.set({ speed: Math.max(0, Math.min(SPEEDS.length - 1, speed)) }); }

  set(choice) {
    Object.assign(this, choice);
    this.redraw();
  }

  /** Fold a band to its line of numbers, or unfold it. */
  on_close(band) {
    this.closed[this.closed.has(band) ? "delete" : "add"](band);
    this.redraw();
  }

  on_head(head) { this.set({ head }); }

  on_breakpoint(instructions) {
    if (!instructions.length) this.tell(this.about.counter ? "There is no instruction at the program counter." : NO_COUNTER);
    const set = instructions.some((one) => this.breakpoints.has(one));
    for (const one of instructions) this.breakpoints[set ? "delete" : "add"](one);
    this.redraw();
  }

  /** Ask, now and then, how far the run goes, until its end is known. A question of the person comes first. */
  async explore() {
    let pause = EXPLORE;
    while (this.element.isConnected && this.state?.loops === null && this.source.explore) {
      await new Promise((done) => { setTimeout(done, this.source.pace ?? pause); });
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

/** [row, column] of the entries that differ between two states; null where they show other columns. */
function differing(before, after, width) {
  const same = before.columns.length === after.columns.length;
  if (!same || before.columns.some((column, i) => column !== after.columns[i])) return null;
  const found = [];
  after.entries.forEach((entry, i) => {
    if (entry !== before.entries[i]) found.push([i % width, after.columns[Math.floor(i / width)]]);
  });
  return found;
}
