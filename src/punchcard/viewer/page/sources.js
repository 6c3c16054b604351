/** Where a page gets its answers from: a server, replies that were recorded, or the model itself. See `page.js`. */
import { floats } from "./base64.js";
import { Model } from "./equation.js";
import { bandsOf, columnName, decode, rowName } from "./decode.js";
import { split } from "./elements.js";
import { Storyteller, storyOf } from "./story.js";

/** Questions to the server that sent the page. */
export function remote(base = "api/") {
  const ask = (name, names) => async (...given) => {
    const last = given[names.length] ?? {};
    const question = Object.fromEntries(names.map((key, i) => [key, given[i]]));
    const answer = await fetch(base + name, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...question, ...last }),
    });
    const reply = await answer.json();
    if (!answer.ok) throw new Error(reply.error ?? `the server answers ${answer.status}`);
    return reply;
  };
  return {
    about: ask("about", []), formulas: ask("formulas", ["layer"]), state: ask("state", ["moment"]),
    attention: ask("attention", ["loop", "layer", "head"]), explain: ask("explain", ["moment", "column"]),
    weights: ask("weights", ["layer"]), find: ask("find", ["what", "moment"]), explore: ask("explore", []),
    build: (choice) => ask("build", [])(choice),
  };
}

/** What both kinds of file can say without a server, given the cards. A subclass has `card(moment)`. */
class Inside {
  constructor(data) {
    this.data = data;
    this.layers = data.about.layers.length;
    this.bands = bandsOf(data.about.layout);
    const numbers = data.about.program.instructions.map((one) => one.number).sort((one, other) => one - other);
    /** How far the next instruction is, where there is no branch. */
    this.size = numbers.slice(1).reduce((least, number, i) => Math.min(least, number - numbers[i] || least), Infinity);
  }

  async about() { return this.data.about; }

  async formulas(layer) {
    if (!this.data.formulas?.[layer]) throw new Error("this file has no formulas inside");
    return this.data.formulas[layer];
  }

  async weights(layer, { head, unit } = {}) {
    const found = this.data.weights?.[`${layer}/${head ?? ""}/${unit ?? ""}`];
    if (!found) throw new Error("this file has no weights inside");
    return found;
  }

  async explore() {
    const { loops, ended } = this.data.about;
    return { known_loops: loops ?? this.last().loop, loops, ended, message: null };
  }

  /** What the step that ends at a moment did to a column, formula by formula. */
  async explain(moment, column) {
    const { width } = this.data.about.layout;
    const part = (card) => card.slice(column * width, (column + 1) * width);
    const after = part(this.card(moment));
    const before = moment > 0 ? part(this.card(moment - 1)) : after;
    const { layer, stage } = split(Math.max(0, moment - 1), this.layers);
    const known = this.data.formulas?.[layer];
    const formulas = !known || moment === 0 ? [] : stage === 0
      ? this.heads(known, { before, after, moment, column }) : this.assigned(known, before, after);
    return { moment, column, name: columnName(this.data.about, column), before, after, formulas, host: false };
  }

  /** All heads of a step at once, with the rows that differ: without the weights nobody can tell who did what. */
  heads(known, { before, after }) {
    const rows = [...before.keys()].filter((row) => before[row] !== after[row]);
    const text = known.heads.map((head) => head.about).join("; ");
    return [{ kind: "attend", text, rows: rows.map((row) => rowName(this.bands, row)),
      before: rows.map((row) => before[row]), after: rows.map((row) => after[row]), details: [] }];
  }

  assigned(known, before, after) {
    const numbers = new Map([...before.keys()].map((row) => [rowName(this.bands, row), row]));
    return known.formulas.map((text, i) => {
      const rows = known.rows[i].map((name) => numbers.get(name));
      return { kind: "assign", text, rows: known.rows[i], before: rows.map((row) => before[row]),
        after: rows.map((row) => after[row]), details: known.details[i] };
    });
  }

  /** The first moment after (or before) this one at which rows in a column are others than in the moment before it, if one is soon. */
  async change(moment, forward, rows, column) {
    const { width } = this.data.about.layout;
    const band = [...this.bands, ...this.data.about.layout.blocks].find((one) => one.name === rows);
    if (!band) throw new Error(`no row block '${rows}'`);
    const first = column * width + band.start;
    const differ = (one, other) => one.subarray(first, first + band.rows).some((entry, i) => entry !== other[first + i]);
    const goesOn = patience();
    let at = forward ? moment + 1 : moment - 1;
    for (; at >= 1 && at <= this.last().moment && await goesOn(); at += forward ? 1 : -1) {
      if (differ(this.card(at - 1), this.card(at))) return { moment: at, searched: 0 };
    }
    return { moment: null, searched: Math.floor(at / (2 * this.layers)) };
  }
}

/** Replies that were written down; moments between them cannot be shown. */
class Recorded extends Inside {
  constructor(data) {
    super(data);
    this.states = new Map();
    let before = null;
    for (const state of data.states) {
      const columns = state.columns ?? before.columns;
      const { width } = data.about.layout;
      const entries = state.entries ? floats(state.entries) : carried(before, columns, width);
      const at = new Map(columns.map((column, i) => [column, i * width]));
      for (const [row, column, value] of state.changes ?? []) entries[at.get(column) + row] = value;
      before = { ...before, ...state, columns, entries };
      this.states.set(state.moment, before);
    }
    this.moments = [...this.states.keys()].sort((one, other) => one - other);
  }

  last() { return this.states.get(this.moments.at(-1)); }

  at(moment) {
    const least = this.moments[0];
    return this.states.get(Math.max(least, Math.min(moment, this.moments.at(-1))))
      ?? this.states.get(this.moments.filter((one) => one <= moment).at(-1));
  }

  /** All columns of a card; those that were not written down are 0. */
  card(moment) {
    const { width, columns } = this.data.about.layout;
    const state = this.at(moment);
    const card = new Float64Array(width * columns);
    state.columns.forEach((column, i) => card.set(state.entries.subarray(i * width, (i + 1) * width), column * width));
    return card;
  }

  async state(moment) { return this.at(moment); }

  async attention(loop, layer, head) {
    const found = this.data.attention[`${loop}/${layer}/${head}`];
    if (!found) throw new Error(`the attention of loop ${loop}, layer ${layer + 1} was not recorded`);
    return found;
  }

  async find(what, moment, { forward = true, instructions = [], rows, column } = {}) {
    if (what === "change") return this.change(moment, forward, rows, column);
    const loops = this.moments.filter((one) => one % (2 * this.layers) === 0).map((one) => this.states.get(one));
    return search(loops, what, moment, forward, instructions, this.last(), this.size);
  }
}

/** The entries of columns as they were before; 0 where they were not shown. */
function carried(before, columns, width) {
  if (columns === before.columns) return before.entries.slice();
  const at = new Map(before.columns.map((column, i) => [column, i * width]));
  const entries = new Float64Array(columns.length * width);
  columns.forEach((column, i) => {
    const from = at.get(column);
    if (from !== undefined) entries.set(before.entries.subarray(from, from + width), i * width);
  });
  return entries;
}

/** Look through the states at the beginnings of loops, which follow each other; `end` is the last state. */
function search(states, what, moment, forward, instructions, end, size) {
  if (what === "halt") {
    const there = end.ended && (forward ? end.moment > moment : end.moment < moment);
    return { moment: there ? end.moment : null, searched: end.loop };
  }
  const found = states.filter((state, i) => {
    const before = states[i - 1];
    if (forward ? state.moment <= moment : state.moment >= moment) return false;
    if (what === "breakpoint") return instructions.includes(state.program_counter);
    if (!before) return false;
    if (what === "port") return state.output !== before.output || state.read !== before.read;
    if (state.program_counter === null || before.program_counter === null) return false;
    return state.program_counter !== before.program_counter + size;
  });
  return { moment: (forward ? found[0] : found.at(-1))?.moment ?? null, searched: end.loop };
}

/** Milliseconds that a question may take: of a run without an end nobody can tell all. */
const LONGEST = 5_000;
const KEPT = 600;
/** Entries of all cards that are kept for a while, and of those that are kept for good. */
const ROOM = 1 << 23;
const MARKED = 1 << 26;
const HEADS_KEPT = 32;
/** Milliseconds that a page runs ahead at a time, and then leaves to others. */
const AHEAD = 24;
const PACE = 16;
/** Milliseconds that a page runs ahead before it waits for a question. */
const MOST_AHEAD = 30_000;
/** Every so many loops a card is kept for good, so that going back is quick too; of a long run fewer. */
const MARK = 32;
/** Cards of so many columns show attention as a matrix. */
const MATRIX = 128;

const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

/** To be asked again and again in long work: it leaves time to others, and says false once the work took too long. */
function patience() {
  const begun = performance.now();
  let rested = begun;
  return async () => {
    if (performance.now() - rested > AHEAD) {
      await pause(0);
      rested = performance.now();
    }
    return rested - begun < LONGEST;
  };
}

/** A card in fewer bytes, where its entries are small whole numbers. */
function small(card) {
  const found = Int8Array.from(card);
  return found.every((entry, i) => entry === card[i]) ? found : card.slice();
}

/** The equation itself: every card is computed when somebody asks for it. */
class Computed extends Inside {
  constructor(data) {
    super(data);
    this.model = new Model(data.model);
    this.facts = data.loops ?? {};
    this.cards = new Map([[0, typeof data.card === "string" ? floats(data.card) : data.card]]);
    this.marks = new Map([[0, small(this.cards.get(0))]]);
    this.between = MARK;
    /** The last moment whose card has been computed. */
    this.furthest = 0;
    this.kept = Math.max(12, Math.min(KEPT, Math.floor(ROOM / this.cards.get(0).length)));
    /** How soon a page may ask again for the end of the run. */
    this.pace = PACE;
    this.teller = new Storyteller(data.about, this.bands, data.story);
    /** The attention of the last heads: the sentence, the arrows and the table ask for the same. */
    this.replies = new Map();
  }

  last() {
    const loop = this.data.about.loops ?? Infinity;
    return { moment: 2 * this.layers * loop, loop, ended: this.data.about.ended };
  }

  card(moment) {
    let from = Math.min(moment, this.furthest);
    while (!this.cards.has(from) && !this.marks.has(from)) from -= 1;
    let card = this.cards.get(from) ?? Float64Array.from(this.marks.get(from));
    this.keep(card, from);
    const whole = 2 * this.layers;
    while (from < moment) {
      const by = from % whole === 0 && moment - from >= whole ? whole : 1;
      card = by === 1 ? this.model.step(card, from) : this.model.loop(card);
      from += by;
      card = this.served(card, from);
      this.notice(card, from);
      this.keep(card, from);
    }
    return card;
  }

  keep(card, moment) {
    this.cards.set(moment, card);
    this.furthest = Math.max(this.furthest, moment);
    if (this.cards.size > this.kept) this.cards.delete(this.cards.keys().next().value);
    if (moment % (2 * this.layers * this.between) || this.marks.has(moment)) return;
    this.marks.set(moment, small(card));
    if (this.marks.size * card.length <= MARKED) return;
    this.between *= 2;
    for (const at of this.marks.keys()) if (at % (2 * this.layers * this.between)) this.marks.delete(at);
  }

  /** Where the end of a run is not known yet: whether a card shows that the program has halted. */
  notice(card, moment) {
    const { about, halting } = this.data;
    if (!halting || about.loops !== null || moment % (2 * this.layers)) return;
    const from = halting.column * this.model.width + halting.start;
    if (halting.bits.every((bit, i) => card[from + i] === bit)) this.end(moment / (2 * this.layers), "halted");
  }

  end(loops, ended) { Object.assign(this.data.about, { loops, ended }); }

  /** Run ahead, for some time at most, to learn where the run ends. */
  async explore() {
    const { about, halting, host } = this.data;
    const begun = performance.now();
    this.ahead ??= 0;
    this.spent ??= 0;
    const open = () => (halting || host) && about.loops === null && this.spent < MOST_AHEAD;
    if (!open() && about.loops === null) this.pace = 1000;
    while (open() && performance.now() - begun < AHEAD) this.card(2 * this.layers * (this.ahead += 1));
    this.spent += performance.now() - begun;
    return { known_loops: about.loops ?? this.ahead, loops: about.loops, ended: about.ended, message: null };
  }

  /** The card that a half layer leaves, before a host puts anything there. */
  made(moment) {
    const isServed = moment % (2 * this.layers) === 0 && this.facts[moment / (2 * this.layers)]?.changes;
    return isServed ? this.model.step(this.card(moment - 1), moment - 1) : this.card(moment);
  }

  /** The card with what a host put there between two loops. One in the page is asked once for each loop, in their order. */
  served(card, moment) {
    if (moment % (2 * this.layers)) return card;
    const loop = moment / (2 * this.layers);
    const { host, about } = this.data;
    if (host && !(loop in this.facts) && about.loops === null) {
      this.facts[loop] = host(card, this.facts[loop - 1] ?? {});
      if (this.facts[loop].ended) this.end(loop, this.facts[loop].ended);
    }
    for (const [row, column, value] of this.facts[loop]?.changes ?? []) card[column * this.model.width + row] = value;
    return card;
  }

  /** What is on the card at the beginning of a loop, beside what was written down for it. */
  fact(loop) {
    const { counter, program } = this.data.about;
    const card = this.card(2 * this.layers * loop);
    const { width } = this.model;
    const at = (column) => card.subarray(column * width, (column + 1) * width);
    const read = counter ? Number(decode(counter, at)) : NaN;
    const counted = Number.isNaN(read) ? null : read; // before the first instruction there is none
    this.instructions ??= new Map(program.instructions.map((one) => [one.number, one]));
    const found = this.instructions.get(counted);
    return { program_counter: counted, instruction: found?.text ?? null, line: found?.line ?? null, output: "", read: 0,
      ...this.facts[loop] };
  }

  async state(wanted) {
    await this.reach(wanted);
    const moment = Math.min(wanted, this.last().moment);
    const { loop, layer, stage } = split(moment, this.layers);
    const { about } = this.data;
    const { width } = this.model;
    const entries = this.card(moment);
    const before = moment > 0 ? this.card(moment - 1) : entries;
    const changed = [];
    entries.forEach((entry, i) => { if (entry !== before[i]) changed.push([i % width, Math.floor(i / width)]); });
    const at = (column) => entries.subarray(column * width, (column + 1) * width);
    const done = moment === this.last().moment;
    return { message: null, ...this.fact(loop), changes: undefined, moment, loop, layer, stage, entries, changed,
      columns: [...Array(about.layout.columns).keys()], values: about.shown.map((one) => decode(one, at)),
      story: storyOf(this, this.teller, moment), ended: done ? about.ended : null, loops: about.loops, known_loops: about.loops ?? loop };
  }

  /** Make the cards up to a moment, or to the end of the run if they show it. One that is too far is refused. */
  async reach(moment) {
    const step = 2 * this.layers;
    const goesOn = patience();
    const reached = () => Math.floor(this.furthest / step);
    while (this.data.about.loops === null && step * (reached() + 1) <= moment) {
      this.card(step * (reached() + 1));
      if (!await goesOn()) {
        const [asked, known] = [Math.floor(moment / step), reached()].map((loop) => loop.toLocaleString("en"));
        throw new Error(`Loop ${asked} is far away: this page has computed ${known} loops. Ask again to continue from there.`);
      }
    }
  }

  async attention(loop, layer, head) {
    await this.reach(2 * this.layers * loop);
    if (loop > this.last().loop) throw new Error(`loop ${loop}: the run ends after ${this.last().loop}`);
    const { near, ...reply } = this.attended(loop, layer, head);
    return reply;
  }

  attended(loop, layer, head) {
    const key = `${loop}/${layer}/${head}`;
    if (!this.replies.has(key)) this.replies.set(key, this.computed(loop, layer, head));
    if (this.replies.size > HEADS_KEPT) this.replies.delete(this.replies.keys().next().value);
    return this.replies.get(key);
  }

  computed(loop, layer, head) {
    const card = this.card(2 * this.layers * loop + 2 * layer);
    const found = this.model.layers[layer].attention(card, head);
    const { n } = found;
    const matrix = n <= MATRIX ? new Float64Array(n * n) : null;
    const moves = [];
    for (let j = 0; j < n; j++) {
      const { columns, weights } = found.near[j];
      const taken = columns.map((i, place) => [i, weights[place]]);
      for (const [i, weight] of taken) if (matrix) matrix[j * n + i] = weight;
      const told = taken.filter(([, weight]) => weight >= 1 / 64);
      const scores = matrix || told.some(([i]) => i !== j) ? found.scores(j) : null; // of a large card where something moves
      for (const [i, weight] of told) {
        const score = found.score(i, j);
        const lower = (scores ?? []).reduce((most, one) => (one < score ? Math.max(most, one) : most), -Infinity);
        moves.push([i, j, weight, score, lower === -Infinity ? null : score - lower]);
      }
    }
    return { loop, layer, head, temperature: found.temperature, columns: [...Array(n).keys()], moves, matrix,
      near: found.near };
  }

  /** The weights, from the matrices that the page computes with. */
  async weights(layer, { head, unit } = {}) {
    const found = this.model.layers[layer];
    const row = (number) => rowName(this.bands, number);
    const whole = { layer, heads: found.heads.length, hidden: found.w1.rows };
    const entries = (matrix, made, from, kept = () => true) => [...matrix.values.keys()]
      .filter((e) => kept(matrix.row[e], matrix.column[e]))
      .map((e) => [made(matrix.row[e]), from(matrix.column[e]), matrix.values[e]]);
    if (head !== undefined) {
      const { key, query, value, temperature } = found.heads[head];
      const parts = [["key", key, (i) => `key ${i + 1}`], ["query", query, (i) => `query ${i + 1}`], ["value", value, row]];
      return { ...whole, name: `layer ${layer + 1}, head ${head + 1}`, temperature,
        parts: parts.map(([name, matrix, made]) => ({ name, bias: null, nonzero: entries(matrix, made, row) })) };
    }
    if (unit === undefined) return { ...whole, name: `layer ${layer + 1}`, temperature: null, parts: [] };
    const own = () => "relu";
    const place = found.b1.row.indexOf(unit);
    return { ...whole, name: `layer ${layer + 1}, hidden unit ${unit + 1}`, temperature: null, parts: [
      { name: "in", bias: found.b1.values[place] ?? 0, nonzero: entries(found.w1, own, row, (made) => made === unit) },
      { name: "out", bias: null, nonzero: entries(found.w2, row, own, (_, from) => from === unit) }] };
  }

  /** What each head added to a column. */
  heads(known, { before, moment, column }) {
    const layer = this.model.layers[known.layer];
    const card = this.card(moment - 1);
    return known.heads.map((head, number) => {
      const added = layer.added(card, number, column);
      const rows = [...new Set(layer.heads[number].value.row)];
      return { kind: "attend", text: head.about ?? "", rows: rows.map((row) => rowName(this.bands, row)),
        before: rows.map((row) => before[row]), after: rows.map((row) => before[row] + added[row]), details: [] };
    });
  }

  async find(what, moment, { forward = true, instructions = [], rows, column } = {}) {
    if ((what === "branch" || what === "breakpoint") && !this.data.about.counter) {
      throw new Error(`a ${this.data.about.machine} machine shows no program counter: it has no ${what} to find`);
    }
    const end = this.last();
    if (what === "change") return this.change(moment, forward, rows, column);
    if (what === "halt") return this.halt(moment, forward);
    const { loop } = split(moment, this.layers);
    // Two loops at a time: a search computes no card beyond the one that it finds.
    const goesOn = patience();
    let at = loop;
    for (; at >= 0 && at <= this.last().loop && await goesOn(); at += forward ? 1 : -1) {
      const pair = [at - 1, at].filter((one) => one >= 0)
        .map((one) => ({ moment: 2 * this.layers * one, ...this.fact(one) }));
      const found = search(pair, what, moment, forward, instructions, { ...end, loop: at }, this.size);
      if (found.moment === 2 * this.layers * at) return found;
    }
    return { moment: null, searched: at };
  }

  /** The end of the run. Where it is not known yet it is looked for, with pauses, so that the page stays alive. */
  async halt(moment, forward) {
    this.spent = 0;
    while (forward && this.data.about.loops === null && (this.data.halting || this.data.host) && this.spent < MOST_AHEAD) {
      await this.explore();
      await pause(0);
    }
    const end = this.last();
    return search([], "halt", moment, forward, [], Number.isFinite(end.loop) ? end : { ...end, loop: this.ahead ?? 0 }, this.size);
  }
}

/** The source for what a document has inside; without data it is the server. */
export function sourceOf(data) {
  if (!data) return remote();
  if (data.kind === "computed") return new Computed(data);
  if (data.kind === "recorded") return new Recorded(data);
  throw new Error(`the data of this page is of the kind ${JSON.stringify(data.kind)}: there are "recorded" and "computed"`);
}
