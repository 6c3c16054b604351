/**
 * Turing machines for the playground: the language and the card of `examples/turing/turing.py`, a machine that is one file outside
 * the package. Tests compare both with it.
 */
import { Text, quoted } from "./source.js";
import { blocksOf, putNumber } from "./punching.js";

const MOVES = { L: -1, S: 0, R: 1 };
const TAPE = 1;
const RULE = "is not a tape with the head in brackets, `tape _[1]01_`, or the only rule of its state and symbol, "
  + "`state symbol -> symbol L|S|R state`";

/** Numbers in the order in which names are first used. */
class Numbered extends Map {
  of(name) {
    if (!this.has(name)) this.set(name, this.size);
    return this.get(name);
  }
}

/** How many bits name so many things. */
const bitsFor = (count) => Math.max(1, Math.ceil(Math.log2(count)));

/** Rules by "state symbol" as {write, move, state, line}, and where it begins. */
export function assembleTuring(content) {
  const text = new Text(content);
  const states = new Numbered();
  const symbols = new Numbered([["_", 0]]);
  const rules = new Map();
  let tape = "[_]";
  text.rows.forEach((row, i) => {
    const words = row.split(";")[0].split(/\s+/).filter(Boolean);
    const [state, old, arrow, write, move, then] = words;
    if (words.length === 2 && state === "tape" && /^[^\][]*\[[^\][]\][^\][]*$/u.test(old)) {
      tape = old;
      return;
    }
    if (!words.length) return;
    const isRule = words.length === 6 && arrow === "->" && /^[^\][]{2}$/u.test(old + write) && move in MOVES;
    const key = isRule && `${states.of(state)} ${symbols.of(old)}`;
    if (!isRule || rules.has(key)) throw text.error(`${quoted(row.trim())} ${RULE}`, { line: i + 1, column: 1 });
    rules.set(key, { write: symbols.of(write), move: MOVES[move], state: states.of(then), line: i + 1 });
  });
  if (!rules.size) throw new Error("the program has no rules: write `state symbol -> symbol L|S|R state`");
  const squares = [...tape].filter((one) => !"[]".includes(one)).map((one) => symbols.of(one));
  return { rules, tape: squares, head: [...tape].indexOf("["), states: [...states.keys()], symbols: [...symbols.keys()], source: text.rows };
}

/** The bits of a state, of a symbol with the edge's, and of a square with one beyond each end. */
export const sizesOf = ({ states, symbols, tape }) => [bitsFor(states.length), bitsFor(symbols.length + 1), bitsFor(tape.length + 2)];

/** The states and symbols of the columns of the table, in their order. */
const pairsOf = ({ states, symbols }) => states.flatMap((_, state) => [...Array(symbols.length + 1).keys()].map((old) => [state, old]));

/** The card with a program on it. */
function punch(program, layout) {
  const [q, s, p] = sizesOf(program);
  const blocks = blocksOf(layout);
  const { width } = layout;
  const ring = 2 ** p;
  const mark = 2 ** (Math.max(p, q + s));
  const pairs = pairsOf(program);
  const card = new Float64Array(width * (TAPE + ring + pairs.length));
  const put = (name, column, number) => putNumber(card, width, blocks.get(name), column, number);
  const { rules, tape, head, symbols } = program;
  const squares = [...tape, ...Array(ring - tape.length).fill(symbols.length)];
  squares.forEach((symbol, square) => {
    put("square", TAPE + square, symbol);
    put("address", TAPE + square, square);
  });
  pairs.forEach(([state, old], i) => {
    const rule = rules.get(`${state} ${old}`);
    const { write, move, state: then } = rule ?? { write: old, move: 0, state };
    const numbers = { address: mark + state * 2 ** s + old, "action.state": then, "action.write": write, "action.left": Number(move < 0),
      "action.right": Number(move > 0), "action.halt": Number(!rule) };
    for (const [name, number] of Object.entries(numbers)) put(name, TAPE + ring + i, number);
  });
  const first = { inside: 1, rule: mark + squares[head], done: squares[head], behind: head, here: head,
    "beside.left": (head - 1 + ring) % ring, "beside.right": head + 1 };
  for (const [name, number] of Object.entries(first)) put(name, 0, number);
  return card;
}

/** What a page knows of a run of a program on the machine that `template` describes. */
export function runTuring(program, template, { name }) {
  const { about, model, story, formulas } = template;
  const { layout } = about;
  const blocks = blocksOf(layout);
  const { rules, tape, states, symbols, source } = program;
  const [, s, p] = sizesOf(program);
  const pairs = pairsOf(program);
  const table = TAPE + 2 ** p;
  const columns = table + pairs.length;
  const sizes = { scratchpad: [0, 1], tape: [TAPE, 2 ** p], table: [table, pairs.length] };
  const letters = [...symbols, "|"];
  const value = (label, group, rows, more = {}) => ({ name: label, group, start: blocks.get(rows)[0], rows: blocks.get(rows)[1], column: 0,
    columns: 1, kind: "unsigned", labels: [], offset: 0, wraps: false, scale: 1, plus: null, pending: null, ...more });
  const pending = { address: blocks.get("behind"), own: blocks.get("address"), rows: blocks.get("done.write"), column: 0 };
  const counter = { ...value("rule", "machine", "rule.symbol"), rows: s + blocks.get("rule.state")[1] };
  const labels = { ...Object.fromEntries(["rule.state", "action.state", "next.state"].map((name) => [name, states])),
    ...Object.fromEntries(["square", "rule.symbol", "action.write", "next.write", "done.write", "seen.left", "seen.right"]
      .map((name) => [name, letters])) };
  const rows = [...source];
  while (rows.length > 1 && !rows.at(-1).trim()) rows.pop();
  return { kind: "computed", model, story, formulas, card: punch(program, layout), loops: {},
    halting: { column: 0, start: blocks.get("done.halt")[0], bits: [1] },
    about: { ...about, title: `a Turing machine: ${states.length} states, ${symbols.length} symbols, ${tape.length} squares`, facts: {}, counter, labels,
      shown: [value("state", "machine", "rule.state", { labels: states }), value("symbol", "machine", "rule.symbol", { labels: letters }),
        value("head", "machine", "here"), ...tape.map((_, i) => value(`square ${i}`, "tape", "square", { column: TAPE + i, labels: letters, pending }))],
      layout: { ...layout, columns, regions: layout.regions.map((one) => ({ ...one, start: sizes[one.name][0], columns: sizes[one.name][1] })) },
      columns_shown: [...Array(columns).keys()], loops: null, ended: null, known_loops: 0, choices: [],
      column_names: Object.fromEntries([...[...Array(2 ** p).keys()].map((i) => [TAPE + i, i < tape.length ? `square ${i}` : `edge ${i}`]),
        ...pairs.map(([state, old], i) => [table + i, `rule ${states[state]} ${letters[old]}`])]),
      program: { name, lines: rows, left_out: 0, instructions: [...rules].map(([key, { line }]) => {
        const [state, old] = key.split(" ").map(Number);
        return { number: state * 2 ** s + old, line, text: rows[line - 1].split(";")[0].trim() };
      }) } } };
}
