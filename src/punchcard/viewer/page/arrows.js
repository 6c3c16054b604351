/** Attention as arrows above the columns, from where a column takes; the figures stand there on hover and on focus. */
import { columnName } from "./decode.js";
import { draw, make, pretty, split } from "./elements.js";

const MOST_ARROWS = 200;

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
    this.picture = draw("svg", { class: "arrows", role: "group", "aria-label": "Who takes from whom in the chosen head" });
    this.tip = make("div", { class: "tip", role: "tooltip", hidden: true });
    this.element = make("div", { class: "head" }, this.picture, this.tip);
  }

  draw(across, paint) {
    const text = 0.72 * paint.text;
    const names = across.places.map(({ column }) => this.name(column, across, text));
    const widest = Math.max(1, ...names.map((name) => name.length)) * 0.6 * text;
    const slanted = widest > across.column - 2;
    const room = slanted ? Math.min(6 * text, widest * 0.72 + 0.8 * text) : 1.3 * text;
    const bow = 4.2 * text;
    this.height = bow + room + 1.5 * text;
    const { picture } = this;
    picture.setAttribute("width", across.width);
    picture.setAttribute("height", this.height);
    const held = picture.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
    picture.replaceChildren(this.tips(), ...this.regions(across, text),
      ...this.names(across, names, text, slanted, bow + 1.5 * text + (slanted ? room - 3 : text)),
      ...this.arcs(across, bow + 1.5 * text - 3, 1.4 * text + 12));
    if (held !== undefined) picture.querySelector(`[data-place="${held}"]`)?.focus();
    this.tip.hidden = true;
  }

  /** A column's own name, or its number in its region where there is room. */
  name(column, across, text) {
    const { about } = this.view;
    const region = about.layout.regions.find((one) => column >= one.start && column < one.start + one.columns);
    const own = about.column_names[column];
    // "instruction 3" of the region "instructions" is plain enough as 3.
    const counted = own?.match(/^(\S+) (\d+)$/);
    if (own !== undefined) return counted && region?.name.startsWith(counted[1]) ? counted[2] : own;
    if (!region || region.columns > 1) return region ? String(column - region.start) : "";
    return this.fits(region.name, across.column, text) ? "" : region.name; // else the name above it is cut
  }

  fits(name, width, text) { return name.length <= Math.floor(width / (0.6 * text)); }

  tips() {
    const head = draw("path", { d: "M0 0 L6 3 L0 6 z", class: "tipped" });
    return draw("defs", {}, draw("marker", { id: `${this.view.id}-tip`, markerWidth: 6, markerHeight: 6, refX: 5, refY: 3,
      orient: "auto", markerUnits: "userSpaceOnUse" }, head));
  }

  regions(across, text) {
    return across.heads.flatMap(({ region, x, width }) => {
      const room = Math.floor(width / (0.6 * text));
      const cut = region.columns > 1 ? `${region.name.slice(0, Math.max(1, room - 1))}…` : "";
      const name = this.fits(region.name, width, text) ? region.name : cut;
      return [draw("rect", { x, y: 1.25 * text, width, height: 2, class: "rule" }),
        draw("text", { x: x + width / 2, y: text * 0.95, "text-anchor": "middle", "font-size": text, class: "region" },
          draw("title", {}, `${region.name}: ${region.about || `${region.columns} columns`}`), name)];
    });
  }

  names(across, names, text, slanted, y) {
    let last = -Infinity;
    return across.places.flatMap(({ column, x, width }, i) => {
      if (!names[i] || x - last < (slanted ? 1.2 * text : 0)) return [];
      last = x;
      const middle = x + width / 2;
      const turn = slanted ? { transform: `rotate(-48 ${middle} ${y})` } : { "text-anchor": "middle" };
      const looked = column === this.view.cell.column ? "name chosen" : "name";
      const choose = () => this.act.choose({ column });
      return [draw("text", { x: middle, y, "font-size": text, class: looked, click: choose, ...turn }, names[i])];
    });
  }

  arcs(across, floor, ceiling) {
    const { attention, about, moment } = this.view;
    const { stage } = split(moment, about.layers.length);
    const drawn = moves(attention).slice(0, MOST_ARROWS);
    const thin = drawn.length > 10 ? 0.5 : 1;
    return drawn.flatMap((move, number) => {
      const [source, target, weight] = move;
      const [from, to] = [across.at.get(source), across.at.get(target)];
      if (!from || !to) return [];
      const [a, b] = [from.x + from.width / 2, to.x + to.width / 2];
      const lift = Math.min(floor - ceiling, 10 + Math.abs(b - a) * 0.24);
      const path = `M${a} ${floor - 1} C${a} ${floor - lift * 1.3} ${b} ${floor - lift * 1.3} ${b} ${floor - 3}`;
      const told = moveText(about, attention, move);
      const show = () => this.look(move, told, (a + b) / 2, floor - lift);
      const hide = () => this.look(null);
      const partly = weight < 0.995 && drawn.length <= 8;
      const label = { x: (a + b) / 2, y: floor - lift - 2, "text-anchor": "middle", class: "weight" };
      return [draw("path", { d: path, class: "reach", pointerenter: show, pointerleave: hide }),
        draw("path", { d: path, class: stage ? "arc" : "arc coming", "stroke-width": thin * (0.8 + 1.6 * weight),
          "marker-end": `url(#${this.view.id}-tip)`, tabindex: 0, role: "img", "aria-label": told, "data-place": number,
          focus: show, blur: hide }),
        ...(partly ? [draw("text", label, pretty(weight))] : [])];
    });
  }

  /** Show a move's figures, and its two columns on the card. */
  look(move, told, x, y) {
    this.tip.hidden = !move;
    if (move) {
      this.tip.textContent = told;
      const half = this.tip.offsetWidth / 2;
      const wide = this.picture.getBoundingClientRect().width;
      this.tip.style.left = `${Math.max(half, Math.min(Math.max(half, wide - half), x))}px`;
      this.tip.style.top = `${Math.max(0, y)}px`;
    }
    this.act.look(move ? [move[0], move[1]] : null);
  }
}
