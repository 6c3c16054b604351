/**
 * What a half layer did, in a sentence, for pages that compute cards themselves: the rules of `machines/story.py`, and of
 * `viewer/story.py` where a design has no words of its own. And what an arrow carries.
 */
import { bitsOf, columnName, decode } from "./decode.js";
import { split } from "./elements.js";

const PUNCHED = "The card before the first loop: the program and its data are punched on it.";
const UNREADABLE = "–";
const UNLISTED = "a word that the program does not list";
const LEAST_WEIGHT = 0.25;
const WHOLE = 0.99;
const MOST_MOVES = 3;
const MOST_BANDS = 4;
const MOST_COLUMNS = 2;
const MOST_BITS = 64;

/** Who takes from whom: for each column the other column that it takes most from, if it takes from another. */
export function taken(moves) {
  const best = new Map();
  for (const [source, target, weight] of moves) {
    if (source !== target && weight >= LEAST_WEIGHT && weight > (best.get(target)?.weight ?? 0)) {
      best.set(target, { source, weight });
    }
  }
  return new Map([...best].sort(([one], [other]) => one - other).map(([target, { source }]) => [target, source]));
}

/** For each column that takes from another: what it takes from, and the weights there, without small ones. */
export function mixtures(near) {
  const all = near.map(({ columns, weights }, target) => {
    const least = LEAST_WEIGHT * Math.max(...weights);
    return [target, columns.map((source, place) => [source, weights[place]]).filter(([, weight]) => weight >= least)];
  });
  return all.filter(([target, parts]) => parts.some(([source]) => source !== target));
}

const numberText = (number) => String(Number(number.toPrecision(6)));
const part = (entries, { start, rows }) => entries.subarray(start, start + rows);

/** ` = 5`: the number that a band's bits make, by its label if it has one, or that it holds; else nothing. */
function held(band, entries, labels) {
  const found = part(entries, band);
  if (found.length === 1) return ` = ${numberText(found[0])}`;
  const number = found.length <= MOST_BITS ? bitsOf(found) : null;
  return number === null ? "" : ` = ${labels[band.name]?.[Number(number)] || number}`;
}

function listed(words) {
  const all = [...words];
  const more = all.length - MOST_BANDS;
  return all.slice(0, MOST_BANDS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The bands of which a head moves something, that hold something in a column. */
export function carried(bands, head, entries) {
  const names = new Set(head.carries);
  return bands.filter((band) => names.has(band.name) && part(entries, band).some((entry) => entry !== 0));
}

/** The sentence of one half layer. `scene` has loop, instruction, coming, before(column), after(column), taken(head), mixtures(head). */
export class Storyteller {
  constructor(about, bands, sentences) {
    Object.assign(this, { about, bands, sentences, labels: about.labels ?? {} });
  }

  tell(layer, attends, scene) {
    const sentence = this.sentences?.[layer]?.[attends ? 0 : 1];
    if (sentence) return this.filled(sentence, scene);
    return attends ? this.attention(layer, scene) : this.changes(scene);
  }

  name(column) { return columnName(this.about, column); }

  filled({ text, quotes, cases }, scene) {
    const found = { loop: String(scene.loop), instruction: scene.instruction ?? UNREADABLE, coming: scene.coming ?? UNLISTED };
    for (const [name, quote] of Object.entries(quotes)) {
      found[name] = quote.moves === undefined ? this.quoted(quote, scene) : this.moves(quote, scene);
    }
    const holds = ([name, comparison, number]) => {
      if (!/^-?\d+$/.test(found[name])) return false;
      const value = Number(found[name]);
      return { "<=": value <= number, ">=": value >= number, "==": value === number }[comparison];
    };
    const chosen = cases.find(holds)?.[3] ?? text;
    return chosen.replace(/\{(\w+)\}/g, (_, name) => found[name]);
  }

  quoted({ place, value, names, before }, scene) {
    const column = find(place, scene);
    if (value === null) return this.name(column);
    const text = decode({ ...value, column: 0, columns: 1 }, () => (before ? scene.before(column) : scene.after(column)));
    if (!names || text === UNREADABLE) return text;
    return Number(text) < this.about.layout.columns ? this.name(Number(text)) : text;
  }

  moves({ moves, idle, into, starts, height }, scene) {
    const within = (column, [first, last]) => column >= first && column < last;
    const groups = new Map();
    for (const [target, mixture] of scene.mixtures(moves)) {
      const parts = mixture.filter(([source]) => !idle.some((region) => within(source, region)))
        .map(([source, weight]) => [source, weight >= WHOLE ? 1 : Number(weight.toPrecision(3))]);
      if (!parts.length || (into && !within(target, into))) continue;
      const key = parts.join();
      if (!groups.has(key)) groups.set(key, { parts, targets: [] });
      groups.get(key).targets.push(target);
    }
    const told = [...groups.values()].map(({ parts, targets }) => `${this.together(targets)} `
      + `${targets.length === 1 ? "takes" : "take"} ${this.mixed(parts, starts, height, scene)}`);
    const more = told.length - MOST_MOVES;
    return (told.slice(0, MOST_MOVES).join(", ") || "nothing moves") + (more > 0 ? ` and ${more} more` : "");
  }

  mixed(parts, starts, height, scene) {
    const sources = this.together(parts.map(([source]) => source));
    if (parts.length === 1 && parts[0][1] < WHOLE) return `${numberText(parts[0][1])} of ${sources}`;
    return `${parts.length === 1 ? sources : `the average of ${sources}`}${numbers(parts, starts, height, scene)}`;
  }

  together(columns) {
    if (columns.length <= 2) return columns.map((column) => this.name(column)).join(" and ");
    return `${this.name(columns[0])} and ${columns.length - 1} more columns`;
  }

  attention(layer, scene) {
    const told = this.about.layers[layer].heads.flatMap((head, number) => {
      const words = [...scene.taken(number)].flatMap(([target, source]) => {
        const what = this.moved(head, scene.before(source));
        return what ? [`${this.name(target)} takes ${what} from ${this.name(source)}`] : [];
      });
      const more = words.length - MOST_MOVES;
      const rest = more > 0 ? `; and ${more} more` : "";
      return words.length ? [`Head ${number + 1}: ${words.slice(0, MOST_MOVES).join("; ")}${rest}.`] : [];
    });
    return told.join(" ") || "No column takes anything from another.";
  }

  moved(head, source) {
    const found = carried(this.bands, head, source);
    return found.length === 1 ? `${found[0].name}${held(found[0], source, this.labels)}`
      : listed(new Set(found.map((band) => band.block.name)));
  }

  changes(scene) {
    const differs = [];
    const sets = [];
    for (let column = 0; column < this.about.layout.columns; column++) {
      const [before, after] = [scene.before(column), scene.after(column)];
      const rows = [...before.keys()].filter((row) => before[row] !== after[row]);
      if (rows.length) differs.push(column);
      if (rows.some((row) => after[row] !== 0)) sets.push(column);
    }
    const told = (sets.length ? sets : differs).slice(0, MOST_COLUMNS).map((column) => this.change(column, scene));
    if (!told.length) return "The ReLU layer changes nothing.";
    const more = differs.length - told.length;
    const words = told.map(([name, did], i) => (i ? `in ${name} it ${did}` : `In ${name} the ReLU layer ${did}`));
    return words.join("; ") + (more > 0 ? `; ${more} more columns change.` : ".");
  }

  change(column, scene) {
    const [before, after] = [scene.before(column), scene.after(column)];
    const changed = this.bands.filter((band) => part(before, band).some((entry, i) => entry !== after[band.start + i]));
    const empty = (band) => part(after, band).every((entry) => entry === 0);
    const kept = changed.filter((band) => !empty(band)).map((band) => `${band.name}${held(band, after, this.labels)}`);
    const cleared = new Set(changed.filter(empty).map((band) => band.block.name));
    const parts = [...(kept.length ? [`sets ${listed(kept)}`] : []), ...(cleared.size ? [`clears ${listed(cleared)}`] : [])];
    return [this.name(column), parts.join(" and ")];
  }
}

function find([column, head, gives], scene) {
  if (head === null) return column;
  const map = scene.taken(head);
  if (!gives) return map.get(column) ?? column;
  return [...map].find(([, source]) => source === column)?.[0] ?? column;
}

function numbers(parts, starts, height, scene) {
  if (!starts.length) return "";
  const whole = parts.reduce((total, [, weight]) => total + weight, 0);
  const found = Array(height).fill(0);
  for (const [source, weight] of parts) {
    const entries = scene.before(source);
    for (let i = 0; i < height; i++) {
      found[i] += (weight / whole) * starts.reduce((total, start) => total + entries[start + i], 0);
    }
  }
  while (found.length > 1 && found.at(-1) === 0) found.pop();
  return ` = ${found.map(numberText).join(" ")}`;
}

/** The sentence of the half layer that led to a moment of a source that computes its cards. */
export function storyOf(source, teller, moment) {
  if (moment === 0) return PUNCHED;
  const { layers, width } = { layers: source.layers, width: source.model.width };
  const { loop, layer, stage } = split(moment - 1, layers);
  const cut = (card) => (column) => card.subarray(column * width, (column + 1) * width);
  const text = (at) => source.fact(at).instruction?.replace(/\s+/g, " ").trim() ?? null;
  const heads = new Map();
  const scene = { loop, instruction: text(loop), coming: moment % (2 * layers) ? null : text(loop + 1),
    before: cut(source.card(moment - 1)), after: cut(source.made(moment)),
    taken: (head) => {
      if (!heads.has(head)) heads.set(head, taken(source.attended(loop, layer, head).moves));
      return heads.get(head);
    },
    mixtures: (head) => mixtures(source.attended(loop, layer, head).near) };
  return teller.tell(layer, stage === 0, scene);
}
