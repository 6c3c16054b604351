/**
 * The language and the card of the two-layer SUBLEQ machine, for the playground: text to a program as
 * `machines/subleq/text.py` reads it, and a program to a card as `machines/subleq/designs/two_layer.py` punches it. Tests
 * compare both with Python. The weights come from Python: they depend on the number of bits alone, never on a program.
 */
import { plural } from "./elements.js";
import { Text, didYouMean, quoted } from "./source.js";
import { blocksOf, putNumber } from "./punching.js";

const TOKEN = /\s+|[;#].*|(?<character>'(?:\\.|[^\\'])')|(?<directive>\.[A-Za-z_]+)|(?<name>[A-Za-z_]\w*)|(?<number>[0-9]\w*)|(?<mark>[,:+-])/y;
const MEMORY = 3;
const [ZERO, MINUS_ONE] = [1, 2];
const CONSTANTS = [0, -1];

function readData(line, program, bits) {
  const token = line.takeName("a memory cell");
  const { text: name } = token;
  if (program.symbols.has(name)) throw line.error(`memory cell ${quoted(name)} is declared twice`, token);
  if (line.ahead.text === ":") throw line.wrong("a memory cell is declared as `name value`, without a colon");
  const address = program.memory.length;
  const half = 2 ** (bits - 1);
  while (line.ahead.kind !== "end") {
    const [value, at] = line.takeInteger("a value");
    if (value < -half || value >= half) {
      throw line.error(`${value} does not fit a word of ${bits} bits: the range is ${-half} to ${half - 1}`, at);
    }
    program.memory.push(value);
    line.takeIf(",");
  }
  if (program.memory.length === address) program.memory.push(0);
  program.symbols.set(name, { address, size: program.memory.length - address });
}

function readCode(line, program) {
  while (line.secondIs(":")) {
    const token = line.takeName("a label");
    const { text: label } = token;
    line.take();
    if (program.labels.has(label)) throw line.error(`label ${quoted(label)} is declared twice`, token);
    program.labels.set(label, program.code.length);
  }
  if (line.ahead.kind === "end") return;
  const mnemonic = line.takeName("an instruction");
  const name = mnemonic.text.toLowerCase();
  if (!["subleq", "halt"].includes(name)) {
    const near = didYouMean(name, ["subleq", "halt"]);
    throw line.error(`unknown instruction ${quoted(mnemonic.text)}${near}: there are subleq, halt`, mnemonic);
  }
  const operands = [];
  for (const kind of name === "subleq" ? ["cell", "cell", "target"] : []) {
    if (operands.length) {
      if (line.ahead.kind === "end" && operands.length === 2) break;
      if (!line.takeIf(",")) throw line.wrong("operands of subleq are separated by commas, and there are 2 or 3");
    }
    operands.push(readOperand(line, kind, operands.length + 1));
  }
  line.finish(name === "subleq" ? "the 2 or 3 operands of subleq" : "halt");
  program.code.push({ name, operands, line });
}

function readOperand(line, kind, place) {
  const token = line.ahead;
  if (kind === "target" && line.ahead.kind === "number") return { kind, token, number: line.takeInteger("an instruction number")[0] };
  if (kind === "cell" && ["number", "character"].includes(line.ahead.kind)) {
    throw line.wrong("an operand is the name of a memory cell; declare a constant under .data and name it");
  }
  if (kind === "target" && line.ahead.kind !== "name") {
    throw line.wrong("a target is a label, or an instruction's number counted from 0");
  }
  const { text: name } = line.takeName(`operand ${place} of subleq`);
  const offset = kind === "cell" && line.takeIf("+") ? line.takeInteger("an offset")[0] : 0;
  return { kind, token, name, offset };
}

function resolved(operand, line, program, isEnded) {
  const { kind, token, name, number, offset } = operand;
  if (kind === "cell") {
    const found = program.symbols.get(name);
    const near = didYouMean(name, program.symbols.keys());
    if (!found) throw line.error(`unknown memory cell ${quoted(name)}${near}: declare it under .data`, token);
    if (offset < 0 || offset >= found.size) {
      throw line.error(`'${name}+${offset}' is beyond '${name}', which has ${plural(found.size, "cell")}, `
        + "counted from 0", token);
    }
    return found.address + offset;
  }
  if (number !== undefined) {
    if (number < program.code.length + (isEnded ? 0 : 1)) return number;
    throw line.error(`no instruction ${number}: there are ${program.code.length}, counted from 0`, token);
  }
  if (program.labels.has(name)) return program.labels.get(name);
  const near = didYouMean(name, program.labels.keys());
  throw line.error(`unknown label ${quoted(name)}${near}: write it before an instruction, as \`name:\``, token);
}

/** The program of a text: cells with names, and instructions [a, b, c], or null for a halt. */
export function assembleSubleq(content, bits) {
  const program = { symbols: new Map(), memory: [], labels: new Map(), code: [] };
  let section = null;
  const text = new Text(content);
  const lines = [...text.rows];
  for (const line of text.lines(TOKEN)) {
    if (line.ahead.kind === "directive") {
      const token = line.take();
      const { text: name } = token;
      if (![".data", ".code"].includes(name.toLowerCase())) {
        const near = didYouMean(name, [".data", ".code"]);
        throw line.error(`unknown section ${quoted(name)}${near}: there are .data and .code`, token);
      }
      line.finish(name);
      section = name.toLowerCase();
    } else if (section === ".data") readData(line, program, bits);
    else if (section === ".code") readCode(line, program);
    else throw line.wrong("a program begins with .data or .code");
  }
  if (!program.code.length) throw new Error("the program is empty: .code needs at least one instruction");
  const isEnded = program.code.at(-1).name === "halt";
  const instructions = program.code.map(({ name, operands, line }, number) => {
    if (name === "halt") return null;
    const found = operands.map((one) => resolved(one, line, program, isEnded));
    return found.length === 3 ? found : [...found, number + 1];
  });
  while (lines.length > 1 && !lines.at(-1).trim()) lines.pop();
  const places = program.code.map(({ line }) => line.number);
  if (!isEnded || [...program.labels.values()].includes(instructions.length)) instructions.push(null);
  if (!program.memory.length) {
    program.memory.push(0);
    program.symbols.set("m0", { address: 0, size: 1 });
  }
  const names = [...program.symbols].flatMap(([name, { size }]) => [...Array(size).keys()].map((k) => (k ? `${name}+${k}` : name)));
  return { memory: program.memory, names, instructions, places, lines };
}

/** How many columns a program needs. */
export const columnsOf = ({ memory, instructions }) => MEMORY + memory.length + instructions.length;

/** The card with a program on it, column after column; `blocks` are the rows by name. */
export function punch({ memory, instructions }, blocks, width, bits) {
  const start = MEMORY + memory.length;
  const columns = start + instructions.length;
  const card = new Float64Array(width * columns);
  const put = (name, column, number) => putNumber(card, width, blocks.get(name), column, number);
  const words = [0, 0, -1, ...memory];
  for (let column = 0; column < columns; column++) {
    put("memory", column, ((words[column] ?? 0) + 2 ** bits) % 2 ** bits);
    if (column) put("position", column, column);
  }
  instructions.forEach((one, number) => {
    const pointers = one ? [MEMORY + one[0], MEMORY + one[1], start + one[2]] : [ZERO, MINUS_ONE, start + number];
    pointers.forEach((pointer, i) => put(`command.${"abc"[i]}`, start + number, pointer));
  });
  card[blocks.get("inside")[0]] = 1;
  [ZERO, MINUS_ONE, start].forEach((pointer, i) => put(`pointer.${"abc"[i]}`, 0, pointer));
  put("following", 0, start);
  return card;
}

/** What a page knows of a run of a program on the machine that `template` describes. */
export function runSubleq(program, template, { bits, name }) {
  const { about, model, story, formulas } = template;
  const { layout } = about;
  const blocks = blocksOf(layout);
  const { memory, names, instructions, places, lines } = program;
  const start = MEMORY + memory.length;
  const columns = columnsOf(program);
  const sizes = { scratchpad: [0, 1], constants: [1, 2], memory: [MEMORY, memory.length], instructions: [start, instructions.length] };
  const regions = layout.regions.map((region) => ({ ...region, start: sizes[region.name][0], columns: sizes[region.name][1] }));
  const columnNames = Object.fromEntries([...CONSTANTS.map((number, i) => [1 + i, `constant ${number}`]), ...names.map((one, i) => [MEMORY + i, one]),
    ...instructions.map((_, i) => [start + i, `instruction ${i}`])]);
  const counter = { ...about.counter, offset: -start - 1 };
  const labels = [...Array(columns).keys()].map((column) => columnNames[column] ?? "");
  const machine = about.shown.filter(({ group }) => group === "machine")
    .map((one) => (one.name === counter.name ? counter : { ...one, labels }));
  const cell = about.shown.find(({ group }) => group === "memory");
  const shown = [...machine, ...names.map((one, i) => ({ ...cell, name: one, column: MEMORY + i }))];
  const [from, rows] = blocks.get("pointer.b");
  return { kind: "computed", model, story, formulas, card: punch(program, blocks, layout.width, bits), loops: {},
    halting: { column: 0, start: from, bits: [...Array(rows).keys()].map((i) => (MINUS_ONE >> i & 1 ? 1 : -1)) },
    about: { ...about, title: `${bits}-bit words, ${plural(memory.length, "cell")}, ${plural(instructions.length, "instruction")}`, facts: {}, shown,
      counter, layout: { ...layout, columns, regions }, columns_shown: [...Array(columns).keys()], column_names: columnNames,
      loops: null, ended: null, known_loops: 0, choices: [], program: { name, lines, left_out: 0,
        instructions: instructions.map((one, number) => ({ number, line: places[number] ?? null,
          text: (lines[places[number] - 1] ?? "").trim() || (one ? "subleq" : "halt") })) } } };
}
