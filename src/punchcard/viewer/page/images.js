/**
 * The card and the host of the von Neumann machine for the playground: words to a card as `machines/von_neumann/design.py`
 * punches them, and the ports of the standard dialect as `machines/von_neumann/host.py` serves them. Tests compare both with
 * Python. An image is {words, labels, lines, source}: the words at address 0, 1, 2, ..., and the line that each comes from.
 */
import { blocksOf, putNumber } from "./punching.js";

const INSTRUCTION = 3;
const MEMORY = 1;
const MOST_SHOWN = 64;
const EVENTS = ["source", "destination", "counter", "output"];
const OFFSETS = ["here", "less1", "less2"];

/** What the addresses of a machine mean: `machines/von_neumann/addresses.py` for the standard dialect. */
const addressesOf = (bits, length) => ({ size: 2 ** bits, memory: 2 ** length, outputPort: 2 ** bits - 1, inputCell: 2 ** bits - 2,
  halts: 2 ** (bits - 1), ports: [2 ** bits - 2, 2 ** bits - 1] });

/** The card with an image on it. */
export function punchImage(words, layout, bits, length) {
  const { size, memory, inputCell, ports } = addressesOf(bits, length);
  const blocks = blocksOf(layout);
  const { width } = layout;
  const card = new Float64Array(width * (MEMORY + memory + ports.length));
  const put = (name, column, number) => putNumber(card, width, blocks.get(name), column, number);
  const cell = (column, word, address, beyond) => {
    put("memory", column, word);
    put("beyond", column, beyond);
    put("outside", column, 1);
    OFFSETS.forEach((offset, less) => put(`position.${offset}`, column, (address - less + memory) % memory));
  };
  for (let address = 0; address < memory; address++) cell(MEMORY + address, ((words[address] ?? 0) + size) % size, address, 0);
  ports.forEach((port, i) => cell(MEMORY + memory + i, 0, port % memory, 1));
  put("inside", 0, 1);
  for (const block of ["word", "away", "store", "counter", "event"]) put(block, 0, 0);
  put("word.a", 0, inputCell);
  put("away.a", 0, 1);
  OFFSETS.forEach((offset, less) => put(`store.${offset}`, 0, (memory - less) % memory));
  return card;
}

/** What serves the ports between two loops: given a card and what was so before, it says what it did and puts it on the card. */
export function hostOf(layout, bits, length, input) {
  const { size, memory, outputPort, inputCell, halts, ports } = addressesOf(bits, length);
  const blocks = blocksOf(layout);
  const { width } = layout;
  const column = (port) => MEMORY + memory + ports.indexOf(port);
  const bytes = new TextEncoder().encode(input);
  return (card, before) => {
    const { read = 0, written = [] } = before;
    const changes = [];
    const now = { read, written, output: before.output ?? "" };
    const number = (name, at) => {
      const [from, rows] = blocks.get(name);
      let found = 0;
      for (let i = 0; i < rows; i++) if (card[at * width + from + i] > 0) found += 2 ** i;
      return found;
    };
    const put = (name, at, value) => {
      const [from, rows] = blocks.get(name);
      for (let i = 0; i < rows; i++) changes.push([from + i, at, Math.floor(value / 2 ** i) % 2 ? 1 : -1]);
    };
    const isSet = Object.fromEntries(EVENTS.map((name) => [name, number(`event.${name}`, 0) === 1]));
    if (isSet.output) {
      now.written = [...written, (size - number("memory", column(outputPort))) % 256];
      now.output = new TextDecoder().decode(Uint8Array.from(now.written));
      put("memory", column(outputPort), 0);
    }
    const counter = (number("counter", 0) - INSTRUCTION + size) % size;
    const fault = (operand, address) => Object.assign(now, { ended: "fault", message: `the instruction at ${counter} `
      + `${operand === "instruction" ? "reaches to" : `has operand ${operand} =`} address ${address}, and the memory has ${memory} cells` });
    if (isSet.counter) {
      if (counter >= halts) now.ended = "halted";
      else fault("instruction", Math.max(counter, memory));
    } else if (isSet.source || isSet.destination) {
      const words = { a: number("word.a", 0), b: number("word.b", 0) };
      const wrong = ["a", "b"].find((name) => words[name] >= memory && words[name] < outputPort);
      if (wrong) fault(wrong, words[wrong]);
      else if (words.a === outputPort) {
        const toCell = words.b !== outputPort;
        const value = bytes[read] ?? -1;
        now.read = Math.min(read + 1, bytes.length);
        put("memory", column(inputCell), (toCell ? size - value : size + value) % size);
        put("word.a", 0, inputCell);
        if (toCell) {
          put("word.b", 0, outputPort);
          put("away.b", 0, 1);
        }
      }
    }
    return changes.length ? { ...now, changes } : now;
  };
}

/** The names of addresses, such as `loop` or `loop+2`; of several at one address the last by name counts. */
function names(labels) {
  const places = [...labels].map(([name, at]) => [at, name]).sort(([one, first], [other, second]) => one - other || (first < second ? -1 : 1));
  return (address) => {
    const [at, name] = places.findLast(([place]) => place <= address) ?? [0, ""];
    if (!name) return String(address);
    return at === address ? name : `${name}+${address - at}`;
  };
}

/** What a page knows of a run of an image on the machine that `template` describes. */
export function runImage({ words, labels, lines, source }, template, { bits, length, name, input }) {
  const { about, model, story, formulas } = template;
  const { layout, shown: [counter, ...others] } = about;
  const { size, memory, halts } = addressesOf(bits, length);
  const nameOf = names(labels);
  const named = [...labels].filter(([, at]) => at < memory).slice(0, MOST_SHOWN);
  const [value] = others.filter(({ group }) => group === "machine");
  const cell = { ...value, group: "memory", start: layout.blocks.find((block) => block.name === "memory").start };
  const word = (at) => ((words[at] ?? 0) + size) % size;
  const code = (address) => [0, 1, 2].map((k) => word(address + k)).map((one) => (one < halts ? nameOf(one) : String(one - size))).join(" ");
  const first = new Map();
  lines.forEach((line, address) => { if (!first.has(line)) first.set(line, address); });
  const instructions = [...lines.keys()].filter((address) => lines[address] && address + INSTRUCTION <= words.length
    && (address - first.get(lines[address])) % INSTRUCTION === 0)
    .map((address) => ({ number: address, line: lines[address], text: code(address) }));
  const columns = MEMORY + memory + 2;
  return { kind: "computed", model, story, formulas, card: punchImage(words, layout, bits, length), loops: {},
    host: hostOf(layout, bits, length, input),
    about: { ...about, title: `one memory of ${memory.toLocaleString("en")} words of ${bits} bits`, facts: {}, input,
      shown: [counter, ...others.filter(({ group }) => group === "machine"),
        ...named.map(([label, at]) => ({ ...cell, name: label, column: MEMORY + at }))],
      column_names: Object.fromEntries([...Array(memory).keys()].map((address) => [MEMORY + address, nameOf(address)])),
      columns_shown: [...new Set([0, MEMORY, MEMORY + 1, MEMORY + 2, ...named.map(([, at]) => MEMORY + at), columns - 2, columns - 1])]
        .sort((one, other) => one - other),
      loops: null, ended: null, known_loops: 0, choices: [], program: { name, lines: trimmed(source), left_out: 0, instructions } } };
}

function trimmed(rows) {
  const last = rows.findLastIndex((row) => row.trim());
  return rows.slice(0, Math.max(1, last + 1));
}
