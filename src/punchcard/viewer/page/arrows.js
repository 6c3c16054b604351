/** Attention as arrows above the columns, from where a column takes; the figures stand there on hover and on focus. */
import { bitsOf, columnName } from "./decode.js";
import { draw, make, pretty, shortened, split } from "./elements.js";
import { carried } from "./story.js";

const MOST_ARROWS = 200;
/** So many arrows have what they carry beside them. */
const MOST_LABELS = 12;
const COLOURS = 4;
/** So many letters of a name or of a value have room above the card. */
const MOST_LETTERS = 18;
/** Where on an arrow its value may be, the best place first: 0 is its tail, 1 its tip. */
const PLACES = [0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8];
const MOST_BITS = 64;

/** A move in words. */
export function moveText(about, attention, [source, target, weight, score, gap]) {
  const lead = gap === null ? "every key has this score" : `gap ${pretty(gap)}`;
  const [to, from] = [target, source].map((column) => columnName(about, column));
  return `${to} takes from ${from}: weight ${pretty(weight)}, score ${pretty(score)}, ${lead}, `
    + `temperature ${pretty(attention.temperature)}`;
}

/** The moves between different columns, the strongest first. */
export function moves(attention) {
  return (attention?.moves ?? []).filter(([source, target]) => source !== target).sort((one, other) => other[2] - one[2]);
}

export class Arrows {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.picture = draw("svg", { class: "arrows", role: "group", "aria-label": "Who takes from whom, in all heads" });
    this.tip = make("div", { class: "tip", role: "tooltip", hidden: true });
    this.element = make("div", { class: "head" }, this.picture, this.tip);
  }

  draw(across, paint) {
    const text = 0.75 * paint.text;
    const names = across.places.map(({ column }) => this.name(column, across, text));
    const widest = Math.min(MOST_LETTERS, Math.max(1, ...names.map((name) => name.length))) * 0.6 * text;
    const slanted = widest > across.column - 2;
    const steep = across.column < 1.7 * text ? 0.95 : 0.72;
    const room = slanted ? Math.min(9 * text, widest * steep + 0.8 * text) : 1.3 * text;
    const bow = 6.4 * text;
    this.height = bow + room + 1.5 * text;
    const { picture } = this;
    picture.setAttribute("width", across.width);
    picture.setAttribute("height", this.height);
    const held = picture.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
    const isNew = this.drawn !== this.view.moment;
    this.drawn = this.view.moment;
    picture.replaceChildren(this.tips(), ...this.regions(across, text),
      ...this.names(across, names, text, slanted, bow + 1.5 * text + (slanted ? room - 3 : text)),
      ...this.arcs(across, bow + 1.5 * text - 3, 2.7 * text, text, isNew));
    if (held !== undefined) picture.querySelector(`[data-place="${held}"]`)?.focus();
    this.tip.hidden = true;
  }

  /** A column's own name, or its number in its region where there is room. */
  name(column, across, text) {
    const { about } = this.view;
    const region = about.layout.regions.find((one) => column >= one.start && column < one.start + one.columns);
    const own = about.column_names[column];
    // "instruction 3" of the region "instructions" is plain enough as 3.
    const counted = own?.match(/^(\S+) (-?\d+)$/);
    if (own !== undefined) return counted && region?.name.startsWith(counted[1]) ? counted[2].replace("-", "−") : own;
    if (!region || region.columns > 1) return region ? String(column - region.start) : "";
    return this.fits(region.name, across.column, text) ? "" : region.name; // else the name above it is cut
  }

  fits(name, width, text) { return name.length <= Math.floor(width / (0.6 * text)); }

  tips() {
    return draw("defs", {}, [...Array(COLOURS).keys()].map((colour) => draw("marker", { id: `${this.view.id}-tip${colour}`,
      markerWidth: 7, markerHeight: 7, refX: 5, refY: 3, orient: "auto", markerUnits: "userSpaceOnUse" },
    draw("path", { d: "M0 0 L6 3 L0 6 z", class: `tipped h${colour}` }))));
  }

  regions(across, text) {
    return across.heads.flatMap(({ region, x, width }) => {
      const room = Math.floor(width / (0.6 * text));
      const name = this.fits(region.name, width, text) || region.columns > 1 ? shortened(region.name, room) : "";
      return [draw("rect", { x, y: 1.25 * text, width, height: 2, class: "rule" }),
        draw("text", { x: x + width / 2, y: text * 0.95, "text-anchor": "middle", "font-size": text, class: "region" },
          draw("title", {}, `${region.name}: ${region.about || `${region.columns} columns`}`), name)];
    });
  }

  names(across, names, text, slanted, y) {
    let last = -Infinity;
    return across.places.flatMap(({ column, x, width }, i) => {
      if (!names[i] || x - last < (slanted ? 1.05 * text : 0)) return [];
      last = x;
      const middle = x + width / 2;
      const turn = slanted ? { transform: `rotate(${across.column < 1.7 * text ? -72 : -48} ${middle + (across.column < 1.7 * text ? 0.3 * text : 0)} ${y})` } : { "text-anchor": "middle" };
      const looked = this.view.details && column === this.view.cell.column ? "name chosen" : "name";
      const choose = () => this.act.choose({ column });
      return [draw("text", { x: middle, y, "font-size": text, class: looked, click: choose, ...turn },
        shortened(names[i], MOST_LETTERS), draw("title", {}, names[i]))];
    });
  }

  /** The moves of all heads that carry something; with details also those that are about to be made, and idle ones. */
  shownMoves() {
    const { attentions, about, moment, details, card } = this.view;
    const { layer, stage } = split(moment, about.layers.length);
    if (!stage && !details) return [];
    return attentions.flatMap((attention, head) => moves(attention).map((move) => {
      const what = card.column(move[0]);
      const bands = what ? carried(card.bands, about.layers[layer].heads[head], what) : [];
      return { attention, head, move, bands, isComing: !stage };
    })).filter(({ bands }) => details || bands.length).slice(0, MOST_ARROWS);
  }

  /** What an arrow carries, as people read it: a word, a column's name, a few numbers. */
  value({ bands, move: [source] }) {
    const { about, card } = this.view;
    const entries = card.column(source);
    if (bands.length !== 1) return columnName(about, source);
    const found = entries.subarray(bands[0].start, bands[0].start + bands[0].rows);
    const number = found.length <= MOST_BITS ? bitsOf(found) : null;
    if (number !== null) return card.wordText(bands[0], number);
    const numbers = Array.from(found);
    while (numbers.length > 1 && numbers.at(-1) === 0) numbers.pop();
    const isInstruction = numbers.length > 3 && numbers.every((entry) => Math.abs(entry) === 1);
    return isInstruction ? columnName(about, source) : numbers.slice(0, 3).map((entry) => pretty(entry, 3)).join(" ")
      + (numbers.length > 3 ? " …" : "");
  }

  arcs(across, floor, ceiling, text, isNew) {
    const drawn = this.shownMoves();
    const thin = drawn.length > MOST_LABELS ? 0.5 : 1;
    const boxes = [];
    const labelled = new Map();
    const arcs = drawn.flatMap((one, number) => {
      const { attention, head, move, isComing } = one;
      const [source, target, weight] = move;
      const [from, to] = [across.at.get(source), across.at.get(target)];
      if (!from || !to) return [];
      const [a, b] = [from.x + from.width / 2, to.x + to.width / 2];
      const lift = Math.min(floor - ceiling, 1.2 * text + Math.abs(b - a) * 0.2 + 0.5 * text * (head % 3) - (a < b ? 0 : 0.9 * text));
      const path = `M${a} ${floor - 1} C${a} ${floor - lift * 1.3} ${b} ${floor - lift * 1.3} ${b} ${floor - 3}`;
      const told = `head ${head + 1}: ${moveText(this.view.about, attention, move)}`;
      const show = () => this.look(move, told, (a + b) / 2, floor - lift);
      const hide = () => this.look(null);
      const colour = head % COLOURS;
      if (drawn.length <= MOST_LABELS && !isComing) {
        const at = (t) => [a + (b - a) * t * t * (3 - 2 * t), floor - 3.9 * lift * t * (1 - t)]; // a point of the path
        const bundle = `${head}/${source}`; // one value on several arrows: first once, then again where there is room
        labelled.set(bundle, [...(labelled.get(bundle) ?? []), () => this.label(one, at, boxes, { path, text, across, isNew, floor })]);
      }
      return [draw("path", { d: path, class: "reach", pointerenter: show, pointerleave: hide }),
        draw("path", { d: path, class: `arc h${colour}${isComing ? " coming" : ""}`, "stroke-width": thin * (1 + 1.4 * weight),
          "marker-end": `url(#${this.view.id}-tip${colour})`, tabindex: 0, role: "img", "aria-label": told,
          "data-place": number, focus: show, blur: hide })];
    });
    const all = [...labelled.values()];
    const labels = [...all.map(([first]) => first), ...all.flatMap(([, ...others]) => others)].flatMap((label) => label());
    return [...arcs, ...labels]; // what is carried lies above all arrows
  }

  /** What an arrow carries: it travels once along the arrow, and then stands on it, where it covers no other value. */
  label(one, at, boxes, { path, text, across, isNew, floor }) {
    const words = shortened(this.value(one), MOST_LETTERS) + (one.move[2] < 0.995 ? ` × ${pretty(one.move[2], 2)}` : "");
    const wide = words.length * 0.6 * text + 6;
    const fitted = PLACES.map(at).map(([x, y]) => {
      const middle = Math.max(wide / 2, Math.min(across.width - wide / 2, x));
      return { middle, left: middle - wide / 2, right: middle + wide / 2, top: y - 0.6 * text };
    });
    const free = (box) => box.top <= floor - 1.2 * text && !boxes.some((other) => box.left < other.right && box.right > other.left
      && Math.abs(box.top - other.top) < 1.6 * text);
    const box = fitted.find(free);
    if (!box) return [];
    boxes.push(box);
    const colour = `value h${one.head % COLOURS}`;
    const chip = (attributes) => draw("g", attributes,
      draw("rect", { x: -wide / 2, y: -0.75 * text, width: wide, height: 1.5 * text, rx: 0.75 * text }),
      draw("text", { y: 0.36 * text, "text-anchor": "middle", "font-size": text }, words));
    return [chip({ class: `${colour}${isNew ? " arriving" : ""}`, transform: `translate(${box.middle} ${box.top + 0.4 * text})` }),
      ...(isNew ? [chip({ class: `${colour} travelling`, style: `offset-path:path("${path}")`, "aria-hidden": "true" })] : [])];
  }

  /** Show a move's figures, and its two columns on the card. */
  look(move, told, x, y) {
    this.tip.hidden = !move;
    if (move) {
      this.tip.textContent = told;
      const half = this.tip.offsetWidth / 2;
      const wide = this.picture.getBoundingClientRect().width;
      this.tip.style.left = `${Math.max(half, Math.min(Math.max(half, wide - half), x))}px`;
      // Above the arrow, or where that is cut off, below it.
      const isBelow = y < this.tip.offsetHeight * 1.1;
      this.tip.classList.toggle("below", isBelow);
      this.tip.style.top = `${Math.max(0, y)}px`;
    }
    this.act.look(move ? [move[0], move[1]] : null);
  }
}
