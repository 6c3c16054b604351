/** The card as a picture: bands of rows, groups of columns, bits in two colours and two sizes, real numbers on a scale. */
import { bandsOf, bitsOf, columnName, counterText, rowName } from "./decode.js";
import { colours, make, plural, pretty, shortened } from "./elements.js";
import { columnAt, placeBands, placeColumns, rowAt } from "./geometry.js";
import { Arrows } from "./arrows.js";

/** So many columns are shown without asking; of more, those that took part in a moment that was shown. */
const PLENTY = 64;
const MOST_DRAWN = 2000;
const WORD = 64;
/** A card of so many rows shows all its bands all the time, so that nothing moves but what changes. */
const STEADY = 170;

export class Card {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.bands = bandsOf(view.about.layout);
    this.signed = signedBands(this.bands, view.about);
    this.isSteady = view.about.layout.width <= STEADY;
    const pointers = new Set(view.about.pointers);
    this.pointers = new Set(this.bands.filter((band) => pointers.has(band.name)));
    // What a moment that was shown held stays unfolded, so that the picture keeps still from step to step.
    this.held = new Set();
    this.words = new Set();
    const { columns_shown: always, column_names: named, layout: { columns: count } } = view.about;
    this.named = new Set(always.length < count ? always : Object.keys(named).map(Number));
    /** Columns that took part lately, the last ones at the end. */
    this.used = new Set();
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.labels = make("div", { class: "labels" });
    this.arrows = new Arrows(view, act);
    this.cell = make("p", { class: "cell", "aria-live": "polite", id: `${view.id}-cell` });
    const { layout } = view.about;
    this.grid = make("div", { class: "grid", tabindex: 0, role: "application", "aria-describedby": `${view.id}-cell`,
      "aria-label": `The card: ${layout.width} rows, ${layout.columns} columns. Arrow keys move from cell to cell.` },
    make("div", { class: "corner" }, this.legend()), this.arrows.element, this.labels, this.canvas);
    this.pointer = make("button", { type: "button", class: "beyond", hidden: true, click: () => this.follow() });
    this.element = make("section", { class: "card", "aria-label": "The card" }, this.grid, this.pointer, this.footer());
    this.grid.addEventListener("scroll", () => { if (this.down) this.point(); }, { passive: true });
    this.canvas.addEventListener("pointerdown", (event) => this.pick(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => { this.hot = null; this.tell(); });
    new ResizeObserver(() => { if (view.state) this.draw(); }).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (view.state) this.draw(); });
  }

  legend() {
    const sample = (name, text) => make("span", { class: `sample ${name}` }, text);
    this.away = sample("away", "");
    return make("div", { class: "legend" }, sample("plus", "+1"), sample("minus", "−1"), sample("changed", "new"), this.away);
  }

  footer() {
    this.changes = make("span", {});
    this.hidden = make("button", { type: "button", class: "fold", title: "Fold and unfold what is empty (f)",
      click: () => this.act.fold() });
    const last = this.view.about.layout.columns - 1;
    this.finder = make("input", { type: "number", min: 0, max: last, placeholder: "column",
      title: "Show a column by its number (t)", "aria-label": `Show a column by its number, 0 to ${last}`,
      change: () => this.act.column(Number(this.finder.value)) });
    this.widen = make("button", { type: "button", class: "fold", title: "Room for the numbers above the bits (w)",
      click: () => this.act.wide() });
    return make("footer", {}, this.cell, make("span", { class: "finder" }, this.widen, this.finder), this.changes,
      this.hidden);
  }

  /** The columns to draw: all, or those with a name and those that took part lately. */
  columns() {
    const { state, folding, cell } = this.view;
    const few = state.columns.length <= PLENTY;
    if (few || (!folding && state.columns.length <= MOST_DRAWN)) return state.columns;
    const single = this.view.about.layout.regions.filter((region) => region.columns <= 8);
    const isSingle = (column) => single.some((region) => column >= region.start && column < region.start + region.columns);
    for (const column of this.partners(isSingle)) this.unfold(column);
    for (const column of this.used) if (this.used.size > PLENTY) this.used.delete(column);
    return state.columns.filter((column) => this.named.has(column) || this.used.has(column) || column === cell.column || isSingle(column));
  }

  /** Columns that a step changed, or that a head moved something between; what all columns do alike is left out. */
  partners(isSingle) {
    const { marks, attentions } = this.view;
    const changed = new Set(marks.map(([, column]) => column));
    const found = changed.size <= PLENTY ? [...changed] : [];
    for (const attention of attentions) {
      const moved = (attention?.moves ?? []).filter(([source, target, weight]) => source !== target && weight > 0.25);
      const told = moved.length <= PLENTY ? moved : moved.filter(([, target]) => isSingle(target));
      found.push(...told.flatMap(([source, target]) => [source, target]));
    }
    return new Set(found);
  }

  draw() {
    const { about, state, folding } = this.view;
    const paint = colours(this.element);
    const text = 0.75 * paint.text;
    this.index = new Map(state.columns.map((column, i) => [column, i]));
    const names = Math.min(13 * text, this.widest(text) + 1.6 * text);
    this.grid.style.setProperty("--labels", `${names}px`);
    const shown = this.columns();
    const least = this.view.wide ? 3.8 * text : undefined;
    const room = this.grid.clientWidth - names - 1.1 * paint.text; // the grid has 0.6 rem at its left and 0.5 at its right
    this.across = placeColumns(about.layout, shown, room, text, least);
    for (const place of this.across.places) place.base = this.index.get(place.column) * about.layout.width;
    this.arrows.draw(this.across, paint);
    const wide = this.across.column > 2.1 * text;
    this.widen.textContent = this.view.wide ? "narrow columns" : "wide columns";
    this.widen.hidden = wide && !this.view.wide;
    const held = this.heldRows();
    const chosen = this.view.cell.band;
    const values = (band) => wide && band.rows > 1 && band.rows <= WORD && (this.isSteady || this.isWord(band));
    const rules = { empty: (row) => !held.has(row), chosen, folding, values, closed: this.view.closed };
    this.down = placeBands(this.bands, rules, this.grid.clientHeight - this.arrows.height - 20, text);
    this.place(text);
    this.paint(paint, text);
    const rows = this.down.hidden;
    const columns = state.columns.length - shown.length;
    const count = (number, what) => (number ? [plural(number, what)] : []);
    const away = [...count(rows, "empty band"), ...count(columns, "unused column")].join(", ");
    this.hidden.textContent = folding ? away && `show ${away}` : "fold what is empty";
    const left = about.layout.columns - shown.length;
    this.away.textContent = `${plural(left, "column")} left out`;
    this.away.hidden = left === 0;
    this.summary();
    this.point();
    this.tell();
  }

  /** How wide the names of the bands are. */
  widest(text) {
    if (this.measured === text) return this.wide;
    this.measured = text;
    const pen = this.canvas.getContext("2d");
    pen.font = `600 ${text}px ${getComputedStyle(this.element).fontFamily}`;
    this.wide = Math.max(...this.bands.map((band) => pen.measureText(band.name).width));
    return this.wide;
  }

  /** The same picture again, with other marks. */
  repaint() {
    const paint = colours(this.element);
    this.paint(paint, 0.75 * paint.text);
  }

  entry(row, column) {
    const i = this.index.get(column);
    return i === undefined ? 0 : this.view.state.entries[i * this.view.about.layout.width + row];
  }

  /** The rows that have held something in some column, in a moment that was shown. */
  heldRows() {
    const { entries } = this.view.state;
    const { width } = this.view.about.layout;
    if (this.isSteady && this.held.size < width) for (let row = 0; row < width; row++) this.held.add(row);
    for (let i = 0; i < entries.length && !this.isSteady; i++) if (entries[i] !== 0) this.held.add(i % width);
    return this.held;
  }

  /** All entries of a column as they were before the step that is shown, if they are known; null if it is not shown. */
  column(number) {
    const { state, moment, remembered, about: { layout: { width } } } = this.view;
    const from = remembered.get(moment - 1) ?? state;
    const i = from.columns.indexOf(number);
    return i < 0 ? null : from.entries.subarray(i * width, (i + 1) * width);
  }

  /** A word as people read it: a number, or the column that it names. */
  wordText(band, number) {
    const { about } = this.view;
    if (this.pointers.has(band) && number < about.layout.columns) return columnName(about, Number(number));
    const label = about.labels?.[band.name]?.[Number(number)];
    if (label) return label;
    return String(this.signed.has(band.start) ? BigInt.asIntN(band.rows, number) : number).replace("-", "−");
  }

  word(band, column) {
    const i = this.index.get(column);
    const from = i * this.view.about.layout.width + band.start;
    return bitsOf(this.view.state.entries.subarray(from, from + band.rows));
  }

  isWord(band) {
    if (this.words.has(band)) return true;
    const { entries } = this.view.state;
    const found = this.across.places.some(({ base }) => {
      const from = base + band.start;
      return entries.subarray(from, from + band.rows).every((entry) => Math.abs(Math.abs(entry) - 1) < 0.25);
    });
    if (found) this.words.add(band);
    return found;
  }

  /** The names of the bands, beside the picture. */
  place(text) {
    const { cell, details } = this.view;
    this.labels.replaceChildren(...this.down.places.map(({ band, y, height }) => make("div", {
      class: `label${details && band.name === cell.band ? " chosen" : ""}${this.view.closed.has(band.name) ? " closed" : ""}`,
      title: `${band.name}: ${band.block.about || `${band.rows} rows`}. Click to fold it (z).`,
      click: () => this.act.close(band.name),
      style: `top:${y}px;height:${height}px;font-size:${text}px` }, make("span", {}, band.name))));
    this.labels.style.height = `${this.down.height}px`;
  }

  paint(paint, text) {
    const { view, across, down } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [across.width, down.height + 2];
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    this.findFresh();
    this.cross(pen, paint);
    for (const place of down.places) this.band(pen, paint, place, text);
    for (const fold of across.folded) {
      pen.fillStyle = paint.line;
      for (let y = 4; y < down.height; y += 9) pen.fillRect(fold.x + fold.width / 2 - 1, y, 2, 4);
    }
    this.marks(pen, paint);
    view.painted = performance.now();
  }

  /** The row and column of the chosen cell, and the two columns of an arrow that is looked at. */
  cross(pen, paint) {
    const { cell, looked, details } = this.view;
    pen.fillStyle = paint.current;
    const place = details ? this.across.at.get(cell.column) : null;
    if (place) pen.fillRect(place.x, 0, place.width, this.down.height);
    for (const column of looked ?? []) {
      const other = this.across.at.get(column);
      if (other && other !== place) pen.fillRect(other.x, 0, other.width, this.down.height);
    }
  }

  band(pen, paint, { band, y, top, size, lines, gaps }, text) {
    const gap = this.across.column > 14 ? 2 : 1;
    const tall = Math.max(1, size - (size > 7 ? 1.5 : 1));
    const { entries } = this.view.state;
    let most = 1;
    for (const { base } of this.across.places) {
      for (const { row } of lines) most = Math.max(most, Math.abs(entries[base + row]));
    }
    pen.fillStyle = paint.line;
    pen.globalAlpha = 0.6;
    pen.fillRect(0, y - 2, this.across.width, 1);
    for (const fold of gaps) for (let x = 0; x < this.across.width; x += 8) pen.fillRect(x, fold + 2, 3, 1);
    pen.globalAlpha = 1;
    for (const { column, base, x, width } of this.across.places) {
      const fresh = this.fresh.get(column);
      for (const { row, y: up } of lines) {
        const value = entries[base + row];
        if (value !== 0) this.entryMark(pen, paint, { value, x: x + gap / 2, up, wide: width - gap, size, tall, most },
          fresh?.has(row) ? paint.changed : paint.ink);
      }
      pen.globalAlpha = 1;
      if (top) this.number(pen, paint, band, column, [x + width / 2, y + top / 2 + 0.5, width], text);
    }
  }

  /** +1 is a punched mark, -1 a faint dash; another number is written, or where there is no room a bar on a scale. */
  entryMark(pen, paint, { value, x, up, wide, size, tall, most }, colour) {
    pen.fillStyle = colour;
    pen.globalAlpha = 1;
    if (value === 1) {
      pen.beginPath();
      pen.roundRect(x, up + (size - tall) / 2, wide, tall, Math.min(2, tall / 2));
      pen.fill();
    } else if (value === -1) {
      pen.globalAlpha = colour === paint.ink ? 0.38 : 0.9;
      pen.fillRect(x + wide * 0.28, Math.round(2 * (up + size / 2)) / 2 - 0.5, wide * 0.44, 1);
    } else if (size >= 9 && wide >= 26) {
      pen.font = `${Math.min(size, 12)}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(pretty(value, 3), x + wide / 2, up + size / 2 + 0.5, wide);
    } else {
      pen.globalAlpha = 0.2 + 0.8 * (Math.abs(value) / most) ** 0.6;
      if (colour === paint.ink) pen.fillStyle = value > 0 ? paint.plus : paint.minus;
      pen.fillRect(x, up + (size - tall) / 2, wide, tall);
    }
  }

  /** A word as a number, or the name of a column, above its bits, where there is room. */
  number(pen, paint, band, column, [x, y, room], text) {
    const number = this.word(band, column);
    if (number === null) return;
    const most = Math.floor((room - 3) / (0.5 * text)); // letters may be squeezed a little
    let shown = this.wordText(band, number);
    const isName = this.pointers.has(band) || this.view.about.labels?.[band.name];
    const counted = this.pointers.has(band) && shown.match(/^(\w+) (-?\d+)$/);
    if (shown.length > most && counted) shown = counted[1] === "constant" ? counted[2].replace("-", "−") : `#${counted[2]}`;
    if (isName && most > 1) shown = shortened(shown, most);
    if (shown.length > most) return;
    const rows = this.fresh.get(column);
    pen.font = `${text}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = rows && [...rows].some((row) => row >= band.start && row < band.start + band.rows) ? paint.changed : paint.ink;
    pen.fillText(shown, x, y, room - 3);
  }

  /** [row] by column of what changed and holds something now. */
  findFresh() {
    this.fresh = new Map();
    for (const [row, column] of this.view.marks) {
      if (!this.fresh.has(column)) this.fresh.set(column, new Set());
      this.fresh.get(column).add(row);
    }
  }

  /** The outline of the chosen cell, with details. */
  marks(pen, paint) {
    const { cell, details } = this.view;
    const place = this.across.at.get(cell.column);
    const line = this.down.lines.get(cell.row);
    if (!details || !place || !line) return;
    pen.strokeStyle = paint.accent;
    pen.lineWidth = 2.5;
    pen.strokeRect(place.x, line.y - 0.5, place.width, line.size + 1);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [column, row] = [columnAt(this.across, event.clientX - box.left), rowAt(this.down, event.clientY - box.top)];
    return column === null || row === null ? null : { row, column };
  }

  pick(event) {
    const cell = this.at(event);
    if (cell) this.act.choose(cell);
  }

  hover(event) {
    this.hot = this.at(event);
    this.tell();
  }

  /** Which bands changed, by name: a picture may be too tall to show them all at once. */
  summary() {
    const bands = new Map();
    for (const [row, column] of this.view.marks) {
      const band = this.bands.find((one) => row >= one.start && row < one.start + one.rows);
      if (band && !bands.has(band.name)) bands.set(band.name, { row, column });
    }
    const links = [...bands].slice(0, 3).map(([name, cell]) => make("button", { type: "button", class: "fold",
      title: `Choose ${name}`, click: () => this.act.choose(cell) }, name));
    const more = bands.size > 3 ? ` and ${bands.size - 3} more` : "";
    const listed = links.flatMap((link, i) => (i ? [", ", link] : [link]));
    this.changes.replaceChildren(bands.size ? "changed: " : "nothing changed", ...listed, more);
  }

  /** Where all that a step changed is out of sight: say where it is. */
  point() {
    const rows = new Set(this.view.marks.map(([row]) => row));
    const places = this.down.places.filter(({ lines }) => lines.some(({ row }) => rows.has(row)));
    const [top, bottom] = [this.grid.scrollTop, this.grid.scrollTop + this.grid.clientHeight - this.arrows.height];
    const isSeen = ({ y, height }) => y + Math.min(height, 12) <= bottom && y + height > top;
    this.goal = places.some(isSeen) ? null : places[0] ?? null;
    this.pointer.hidden = !this.goal;
    if (!this.goal) return;
    const more = places.length > 1 ? ` and ${places.length - 1} more` : "";
    this.pointer.textContent = `${this.goal.y < top ? "↑" : "↓"} changed: ${this.goal.band.name}${more}`;
  }

  /** Bring what changed into sight. */
  follow() { this.grid.scrollTop = Math.max(0, this.goal.y - (this.grid.clientHeight - this.arrows.height) / 3); }

  /** The chosen cell, or the one under the pointer, in words. */
  tell() {
    const { row, column } = this.hot ?? this.view.cell;
    if (row === null || !this.index) return;
    const changed = this.view.marks.some(([r, c]) => r === row && c === column);
    const band = this.bands.find((one) => row >= one.start && row < one.start + one.rows);
    const number = band.rows > 1 && band.rows <= WORD ? this.word(band, column) : null;
    const signed = number !== null && this.signed.has(band.start) ? BigInt.asIntN(band.rows, number) : number;
    const named = number !== null && (this.pointers.has(band) || this.view.about.labels?.[band.name]);
    const meant = named ? `: ${this.wordText(band, number)}` : this.counted(band, column);
    const word = number === null ? "" : ` · the word is ${String(signed).replace("-", "−")}${meant}`;
    const told = `${columnName(this.view.about, column)} · ${rowName(this.bands, row)} = ${pretty(this.entry(row, column))}`
      + `${changed ? ", changed" : ""}${word}`;
    if (this.cell.textContent !== told) this.cell.textContent = told;
  }

  /** The instruction that the program counter stands for: its word may be that one's column, or the address after it. */
  counted(band, column) {
    const { counter, shown, program } = this.view.about;
    if (!counter || band.start !== counter.start || column !== counter.column) return "";
    const value = this.view.state.values[shown.findIndex((one) => one.name === counter.name)];
    return program.instructions.some(({ number }) => String(number) === value) ? `: instruction ${counterText(this.view.about, value)}` : "";
  }

  /** Show a column from now on, folded or not. */
  unfold(column) {
    this.used.delete(column);
    this.used.add(column);
  }

  /** The next cell in a direction, among those that are drawn. */
  neighbour({ row, column }, right, down) {
    const columns = this.across.places.map((place) => place.column);
    const rows = [...this.down.lines.keys()];
    const step = (list, now, by) => list[Math.max(0, Math.min(list.length - 1, list.indexOf(now) + by))];
    return { row: step(rows, row, down), column: step(columns, column, right) };
  }

  /** Bring the chosen cell into sight. */
  reveal() {
    const place = this.across.at.get(this.view.cell.column);
    const band = this.down.places.find((one) => one.band.name === this.view.cell.band);
    if (!place || !band) return;
    const [top, bottom] = [this.grid.scrollTop, this.grid.scrollTop + this.grid.clientHeight - this.arrows.height];
    if (band.y < top || band.y + band.height > bottom) this.grid.scrollTop = Math.max(0, band.y - (bottom - top) / 3);
    const left = place.x + this.labels.offsetWidth;
    const right = left + place.width - this.grid.clientWidth;
    if (left < this.grid.scrollLeft + this.labels.offsetWidth) this.grid.scrollLeft = place.x;
    else if (right > this.grid.scrollLeft) this.grid.scrollLeft = right;
  }
}

/** Where the bands start whose words have a sign: those of signed values, as the story quotes them, and others of that many bits. */
function signedBands(bands, { shown, signed: quoted }) {
  const starts = (kind) => shown.filter((one) => one.kind === kind).map(({ start }) => start);
  const sizes = (kind) => new Set(shown.filter((one) => one.kind === kind).map(({ rows }) => rows));
  const [signed, unsigned] = [sizes("signed"), sizes("unsigned")];
  const alike = bands.filter(({ rows }) => signed.has(rows) && !unsigned.has(rows)).map(({ start }) => start);
  return new Set([...starts("signed"), ...alike, ...bands.filter(({ name }) => quoted.includes(name)).map(({ start }) => start)]);
}
