/** The card as a picture: bands of rows, groups of columns, bits in two colours and two sizes, real numbers on a scale. */
import { bandsOf, bitsOf, columnName, rowName } from "./decode.js";
import { colours, make, pretty } from "./elements.js";
import { columnAt, placeBands, placeColumns, rowAt } from "./geometry.js";
import { Arrows } from "./arrows.js";

/** So many columns are shown without asking; of more, those that took part in a moment that was shown. */
const PLENTY = 64;
const MOST_DRAWN = 2000;
const WORD = 64;

export class Card {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.bands = bandsOf(view.about.layout);
    this.signed = signedBands(this.bands, view.about.shown);
    // What a moment that was shown held stays unfolded, so that the picture keeps still from step to step.
    this.held = new Set();
    this.words = new Set();
    this.used = new Set(Object.keys(view.about.column_names).map(Number));
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.labels = make("div", { class: "labels" });
    this.arrows = new Arrows(view, act);
    this.cell = make("p", { class: "cell", "aria-live": "polite", id: `${view.id}-cell` });
    const { layout } = view.about;
    this.grid = make("div", { class: "grid", tabindex: 0, role: "application", "aria-describedby": `${view.id}-cell`,
      "aria-label": `The card: ${layout.width} rows, ${layout.columns} columns. Arrow keys move from cell to cell.` },
    make("div", { class: "corner" }, this.legend()), this.arrows.element, this.labels, this.canvas);
    this.element = make("section", { class: "card", "aria-label": "The card" }, this.grid, this.footer());
    this.canvas.addEventListener("pointerdown", (event) => this.pick(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => { this.hot = null; this.tell(); });
    new ResizeObserver(() => { if (view.state) this.draw(); }).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (view.state) this.draw(); });
  }

  legend() {
    const sample = (name, text) => make("span", { class: `sample ${name}` }, text);
    return make("div", { class: "legend" }, sample("plus", "+1"), sample("minus", "−1"), sample("changed", "changed"));
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

  /** The columns to draw: all, or those that were used in a moment that was shown. */
  columns() {
    const { state, marks, attention, folding, cell } = this.view;
    for (const [, column] of marks) this.used.add(column);
    for (const [source, target, weight] of attention?.moves ?? []) {
      if (source !== target && weight > 0.25) { this.used.add(source); this.used.add(target); }
    }
    const few = state.columns.length <= PLENTY;
    if (few || (!folding && state.columns.length <= MOST_DRAWN)) return state.columns;
    const single = this.view.about.layout.regions.filter((region) => region.columns <= 8);
    return state.columns.filter((column) => this.used.has(column) || column === cell.column
      || single.some((region) => column >= region.start && column < region.start + region.columns));
  }

  draw() {
    const { about, state, folding } = this.view;
    const paint = colours(this.element);
    const text = 0.72 * paint.text;
    this.index = new Map(state.columns.map((column, i) => [column, i]));
    const names = Math.min(13 * text, this.widest(text) + 1.6 * text);
    this.grid.style.setProperty("--labels", `${names}px`);
    const shown = this.columns();
    const least = this.view.wide ? 3.8 * text : undefined;
    this.across = placeColumns(about.layout, shown, this.grid.clientWidth - names - 4, text, least);
    for (const place of this.across.places) place.base = this.index.get(place.column) * about.layout.width;
    this.arrows.draw(this.across, paint);
    const wide = this.across.column > 2.1 * text;
    this.widen.textContent = this.view.wide ? "narrow columns" : "wide columns";
    this.widen.hidden = wide && !this.view.wide;
    const held = this.heldRows();
    const chosen = this.view.cell.band;
    const values = (band) => wide && band.rows > 1 && band.rows <= WORD && this.isWord(band);
    const rules = { empty: (row) => !held.has(row), chosen, folding, values, closed: this.view.closed };
    this.down = placeBands(this.bands, rules, this.grid.clientHeight - this.arrows.height - 20, text);
    this.place(text);
    this.paint(paint, text);
    const rows = this.down.hidden;
    const columns = state.columns.length - shown.length;
    const count = (number, what) => (number ? [`${number} ${what}${number === 1 ? "" : "s"}`] : []);
    const away = [...count(rows, "empty band"), ...count(columns, "unused column")].join(", ");
    this.hidden.textContent = folding ? away && `show ${away}` : "fold what is empty";
    this.summary();
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
    this.paint(paint, 0.72 * paint.text);
  }

  entry(row, column) {
    const i = this.index.get(column);
    return i === undefined ? 0 : this.view.state.entries[i * this.view.about.layout.width + row];
  }

  /** The rows that have held something in some column, in a moment that was shown. */
  heldRows() {
    const { entries } = this.view.state;
    const { width } = this.view.about.layout;
    for (let i = 0; i < entries.length; i++) if (entries[i] !== 0) this.held.add(i % width);
    return this.held;
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
    const { cell } = this.view;
    this.labels.replaceChildren(...this.down.places.map(({ band, y, height }) => make("div", {
      class: `label${band.name === cell.band ? " chosen" : ""}${this.view.closed.has(band.name) ? " closed" : ""}`,
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
    const { cell, looked } = this.view;
    pen.fillStyle = paint.current;
    const place = this.across.at.get(cell.column);
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
      for (const { row, y: up } of lines) {
        const value = entries[base + row];
        if (value === 0) continue;
        // A −1 is also lower than a +1, so that the two can be told apart without colour.
        const high = value === -1 ? tall * 0.5 : tall;
        pen.globalAlpha = Math.abs(value) === 1 ? 1 : 0.12 + 0.88 * (Math.abs(value) / most) ** 0.6;
        pen.fillStyle = value > 0 ? paint.plus : paint.minus;
        const from = Math.round(2 * (up + (size - high) / 2)) / 2;
        pen.fillRect(x + gap / 2, from, width - gap, high);
      }
      pen.globalAlpha = 1;
      if (top) this.number(pen, paint, band, column, [x + width / 2, y + top / 2 + 0.5, width], text);
    }
  }

  /** A word as a number above its bits, where there is room. */
  number(pen, paint, band, column, [x, y, room], text) {
    const number = this.word(band, column);
    if (number === null) return;
    const shown = String(this.signed.has(band.start) ? BigInt.asIntN(band.rows, number) : number).replace("-", "−");
    if (shown.length * 0.6 * text > room + 2) return;
    pen.font = `${text}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = paint.ink;
    pen.fillText(shown, x, y);
  }

  /** Outlines of what changed, a run of rows at a time, and of the chosen cell. */
  marks(pen, paint) {
    const outline = (column, first, last, grow) => {
      const place = this.across.at.get(column);
      if (!place) return;
      const tall = last.y + last.size - first.y;
      pen.strokeRect(place.x + 1 - grow, first.y + 0.5 - grow, place.width - 2 + 2 * grow, tall - 1 + 2 * grow);
    };
    pen.lineWidth = 1.5;
    pen.strokeStyle = paint.changed;
    const changed = new Map();
    for (const [row, column] of this.view.marks) {
      if (!changed.has(column)) changed.set(column, new Set());
      changed.get(column).add(row);
    }
    for (const [column, rows] of changed) {
      for (const { lines } of this.down.places) {
        let first = null;
        lines.forEach((line, i) => {
          if (!rows.has(line.row)) return;
          first ??= line;
          const next = lines[i + 1];
          if (next && rows.has(next.row) && next.row === line.row + 1) return;
          outline(column, first, line, 0);
          first = null;
        });
      }
    }
    const { cell } = this.view;
    pen.strokeStyle = paint.accent;
    pen.lineWidth = 2.5;
    const line = this.down.lines.get(cell.row);
    if (line) outline(cell.column, line, line, 1);
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

  /** The chosen cell, or the one under the pointer, in words. */
  tell() {
    const { row, column } = this.hot ?? this.view.cell;
    if (row === null || !this.index) return;
    const changed = this.view.marks.some(([r, c]) => r === row && c === column);
    const band = this.bands.find((one) => row >= one.start && row < one.start + one.rows);
    const number = band.rows > 1 && band.rows <= WORD ? this.word(band, column) : null;
    const signed = number !== null && this.signed.has(band.start) ? BigInt.asIntN(band.rows, number) : number;
    const word = number === null ? "" : ` · the word is ${String(signed).replace("-", "−")}${this.counted(band, column)}`;
    const told = `${columnName(this.view.about, column)} · ${rowName(this.bands, row)} = ${pretty(this.entry(row, column))}`
      + `${changed ? ", changed" : ""}${word}`;
    if (this.cell.textContent !== told) this.cell.textContent = told;
  }

  /** The instruction that the program counter stands for: its word may be that one's column, or the address after it. */
  counted(band, column) {
    const { counter, shown, program } = this.view.about;
    if (!counter || band.start !== counter.start || column !== counter.column) return "";
    const value = this.view.state.values[shown.findIndex((one) => one.name === counter.name)];
    return program.instructions.some(({ number }) => String(number) === value) ? `: instruction ${value}` : "";
  }

  /** Show a column from now on, folded or not. */
  unfold(column) {
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

/** Where the bands start whose words have a sign: those of signed values, and others of that many bits. */
function signedBands(bands, shown) {
  const starts = (kind) => shown.filter((one) => one.kind === kind).map(({ start }) => start);
  const sizes = (kind) => new Set(shown.filter((one) => one.kind === kind).map(({ rows }) => rows));
  const [signed, unsigned] = [sizes("signed"), sizes("unsigned")];
  const alike = bands.filter(({ rows }) => signed.has(rows) && !unsigned.has(rows)).map(({ start }) => start);
  return new Set([...starts("signed"), ...alike]);
}
