/**
 * Brainfuck to `.asq` text for the playground, as `machines/von_neumann/languages/brainfuck.py` writes it: cells are bytes, and
 * the end of the input is read as 0. The texts of the routines come with the page.
 */
import { SourceError, Text } from "./source.js";
import { assembleAsq } from "./asq.js";

const COMMANDS = /[+-]+|[<>]+|[.,[\]]/g;
const MOST_ADDITIONS = 16;

const countOf = (run, letter) => run.split(letter).length - 1;

/** The steps of a program; every other character is a comment. */
function parse(content, at) {
  const steps = [];
  const open = [];
  let loops = 0;
  const merge = (command, by, place) => {
    let [count, first] = [by, place];
    if (steps.at(-1)?.command === command) {
      const before = steps.pop();
      [count, first] = [count + before.count, before.place];
    }
    if (count) steps.push({ command, count, place: first });
  };
  for (const { 0: run, index: place } of content.matchAll(COMMANDS)) {
    if ("+-".includes(run[0])) merge("+", countOf(run, "+") - countOf(run, "-"), place);
    else if ("<>".includes(run[0])) merge(">", countOf(run, ">") - countOf(run, "<"), place);
    else if (run === "[") {
      open.push([loops, place]);
      steps.push({ command: "[", loop: loops, place });
      loops += 1;
    } else if (run === "]") {
      if (!open.length) throw at(place, "no '[' opens the loop that this ']' closes");
      steps.push({ command: "]", loop: open.pop()[0], place });
    } else steps.push({ command: run, place });
  }
  if (open.length) throw at(open.at(-1)[1], "no ']' closes this '['");
  return steps;
}

/** The same program with its loops of the kind [-] and [->++>+<<] as one step each. */
function multiplied(steps) {
  const result = [];
  const starts = [];
  let innermost = false;
  for (const step of steps) {
    result.push(step);
    if (step.command === "[") {
      starts.push(result.length - 1);
      innermost = true;
    } else if (step.command === "]") {
      const start = starts.pop();
      const adds = innermost ? multiples(result.slice(start + 1, -1)) : null;
      if (adds) result.splice(start, Infinity, { command: "*", loop: step.loop, adds, place: result[start].place });
      innermost = false;
    }
  }
  return result;
}

/** [distance, factor] of what a loop adds, when it does nothing else and ends where it began. */
function multiples(body) {
  if (body.some(({ command }) => !"+>".includes(command))) return null;
  let place = 0;
  const changes = new Map();
  for (const { command, count } of body) {
    if (command === ">") place += count;
    else changes.set(place, (changes.get(place) ?? 0) + count);
  }
  const round = changes.get(0) ?? 0;
  changes.delete(0);
  const adds = [...changes].filter(([, count]) => count).map(([distance, count]) => [distance, -round * count])
    .sort(([one], [other]) => one - other);
  return place || Math.abs(round) !== 1 || adds.some(([, factor]) => Math.abs(factor) > MOST_ADDITIONS) ? null : adds;
}

const stub = (distance) => (distance > 0 ? `right${distance}` : `left${-distance}`);
const format = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** Lines of `.asq`; `places` has for each the place of its step in the program. */
class AsqLines {
  constructor({ test, read, move, tape }) {
    this.texts = { "+": "={count} $r", ".": "$t; $r $t; $t (-1)", ",": read, "[": test, "]": "@jump loop{loop}; end{loop}:", "*": "$r" };
    Object.assign(this, { routine: move, tape, lines: [], places: [], labels: 0, place: 0, distances: new Set() });
  }

  add(line) {
    this.lines.push(`    ${line}`);
    this.places.push(this.place);
  }

  label() {
    this.labels += 1;
    return `label${this.labels}`;
  }

  write(step) {
    this.place = step.place;
    if (step.command === ">") this.move(step.count);
    else if (step.adds?.length) {
      this.add(format(this.texts["["], step));
      this.multiply(step);
    } else this.add(format(this.texts[step.command], { ...step, end: step.command === "," ? this.label() : "" }));
  }

  move(distance) {
    this.distances.add(distance);
    const back = this.label();
    this.add(`$return; =${back} $return ${stub(distance)}; ${back}:`);
  }

  /** $more is the value of the cell, $less minus that. */
  multiply({ adds, loop }) {
    this.add("$more; $r $more");
    if (adds.some(([, factor]) => factor < 0)) this.add("$less; $more $less");
    this.add("$r");
    let place = 0;
    for (const [distance, factor] of adds) {
      this.move(distance - place);
      this.add(Array(Math.abs(factor)).fill(factor > 0 ? "$more $r" : "$less $r").join("; "));
      place = distance;
    }
    this.move(-place);
    this.add(`end${loop}:`);
  }

  finish() {
    const stubs = [...this.distances].sort((one, other) => one - other).map((distance) => `${stub(distance)}: $away; =${distance} $away `
      + (distance > 0 ? "move" : "?; @jump move"));
    const own = this.places.length + 1; // up to the halt; moves are shared by all lines, and belong to none
    const end = ["    @halt", ...(stubs.length ? [...stubs, this.routine] : []), "@pool", "tape:", `. [${this.tape}]`, ""];
    this.places = [...this.places, this.place].slice(0, own);
    return [...this.lines, ...end].join("\n");
  }
}

/** An error in the assembly is one of the program that it was made from. */
function translated(assemble, original) {
  try {
    return assemble();
  } catch (error) {
    throw error instanceof SourceError ? original(error) : error;
  }
}

/** The words of a program, and the line of the program that each comes from. `texts` are those of the translator. */
export function assembleBrainfuck(content, bits, texts, library) {
  const text = new Text(content);
  const rowOf = (place) => text.content.slice(0, place).split("\n").length;
  const at = (place, message) => text.error(message, { line: rowOf(place), column: place - text.content.lastIndexOf("\n", place - 1) });
  const writer = new AsqLines(texts);
  for (const step of multiplied(parse(text.content, at))) writer.write(step);
  const asq = writer.finish();
  const { words, labels, lines } = translated(() => assembleAsq(asq, bits, library, { behind: true }),
    ({ said, line }) => at(writer.places[line - 1] ?? 0, said));
  return { words, labels: new Map(), code: labels.get("tape"), lines: lines.map((line) => (line && writer.places[line - 1] !== undefined
    ? rowOf(writer.places[line - 1]) : 0)), source: text.rows };
}
