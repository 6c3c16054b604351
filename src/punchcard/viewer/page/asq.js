/**
 * The assembler of `.asq` text for the playground: labels, cells, macros, constants and scratch cells, by the rules of
 * `machines/von_neumann/languages/asq/`. The standard macros come with the page, as text. Tests compare the words with
 * Python's. An expression is a list of terms {factor, kind, token, name, number, constant}.
 */
import { Text, didYouMean, quoted } from "./source.js";

const TOKEN = new RegExp([/\s+/, /(?:#|\/\/).*/, /(?<string>"[^\\"]*(?:\\[^\n][^\\"]*)*")/, /(?<character>'(?:\\.|[^\\\n])')/,
  /(?<unclosed>["'].*)/, /(?<macro>@[A-Za-z_][A-Za-z0-9_]*)/, /(?<scratch>\$[A-Za-z_][A-Za-z0-9_]*)/,
  /(?<name>[A-Za-z_][A-Za-z0-9_]*)/, /(?<number>[0-9][0-9A-Za-z_]*)/, /(?<mark>[:;?.()[\]+\-=])/].map((one) => one.source).join("|"), "y");
/** A line ends at a line end that is not in a string. */
const STRETCH = /(?:[^"'#/\n]+|"[^\\"]*(?:\\[\s\S][^\\"]*)*"|'(?:\\.|[^\\\n])'|(?:#|\/\/).*|[^"\n])+(?:".*)?|".*/y;
const OPERANDS = 3;
const MOST_DEPTH = 100;
/** A page has room for few cells, so what macros make is limited early. */
const MOST_CELLS = 1 << 14;

const number = (value, token) => [{ factor: 1, kind: "number", token, number: value }];
const times = (terms, factor) => (factor === 1 ? terms : terms.map((term) => ({ ...term, factor: factor * term.factor })));
const keyOf = (terms) => terms.map(({ factor, kind, name = "", number: value = 0, constant }) => `${factor} ${kind} ${name} ${value} `
  + `(${constant ? keyOf(constant) : ""})`).join("+");
const isCells = (item) => item.kind === "cell" || item.kind === "run";
const count = (items) => items.reduce((sum, item) => sum + (item.kind === "run" ? item.codes.length : Number(item.kind === "cell")), 0);

/** The same sum with like terms as one, so that =5 and =2+3 share a cell. */
function collected(terms) {
  let total = 0;
  const rest = new Map();
  for (const term of terms) {
    if (term.kind === "number") {
      total += term.factor * term.number;
      continue;
    }
    const key = keyOf([{ ...term, factor: 1 }]);
    const before = rest.get(key);
    rest.set(key, before ? { ...before, factor: before.factor + term.factor } : term);
  }
  return total || !rest.size ? [...rest.values(), ...number(total, terms[0].token)] : [...rest.values()];
}

/** The items of a text in their order, and the macros that it defines. */
class Parser {
  constructor(text) {
    Object.assign(this, { text, items: [], macros: new Map(), macro: null, isData: false, begun: [] });
  }

  error(message, token) { return this.text.error(message, token); }

  parse() {
    for (const line of this.text.lines(TOKEN, STRETCH)) {
      while (line.ahead.kind !== "end") {
        this.statement(line);
        line.takeIf(";");
      }
    }
    if (this.begun.length) this.finish((rule) => this.error(rule, this.begun.at(-1).token));
    if (this.macro) throw this.error(`macro ${quoted(this.macro.token.text)} has no end: close it with @end`, this.macro.token);
    return this;
  }

  add(item) { (this.macro ? this.macro.items : this.items).push(item); }

  statement(line) {
    if (this.begun.length && (line.at(".") || line.ahead.kind === "macro")) this.finish((rule) => line.wrong(rule));
    if (!this.begun.length) {
      for (const label of this.labels(line)) this.add(label);
      if (line.ahead.kind === "macro") {
        this.isData = false;
        this.directive(line, line.take());
        return;
      }
      this.isData = line.takeIf(".") || this.isData;
    }
    while (!ends(line)) {
      this.begun.push(...this.labels(line));
      if (!ends(line)) this.begun.push(this.data(line));
    }
    if (line.at(";") || !(count(this.begun) && this.begun.at(-1).kind === "label")) this.finish((rule) => line.wrong(rule));
  }

  /** The statement that was begun ends here. */
  finish(wrong) {
    const cells = count(this.begun);
    let items = this.begun.filter((item) => item.kind === "label" || count([item]));
    if (cells && !this.isData) {
      if (this.begun.at(-1).kind === "label") throw wrong("a label within an instruction is before an operand");
      items = instruction(items, cells);
    }
    for (const item of items) this.add(item);
    this.begun = [];
    this.isData &&= !cells;
  }

  labels(line) {
    const found = [];
    while (line.secondIs(":")) {
      const token = line.takeName("a label");
      line.take();
      if (this.macro?.parameters.includes(token.text)) {
        throw this.error(`label ${quoted(token.text)} is a parameter of the macro: choose another name`, token);
      }
      found.push({ kind: "label", token, name: token.text });
    }
    return found;
  }

  data(line) {
    const token = line.ahead;
    if (line.at("[")) return this.zeros(line);
    if (token.kind !== "string") return { kind: "cell", terms: this.operand(line), token };
    line.take();
    return { kind: "run", token, codes: [...new TextEncoder().encode(line.unescape(token))] };
  }

  zeros(line) {
    const token = line.take();
    const [cells, written] = line.takeInteger("the number of cells");
    if (cells < 1) throw this.error(`[${cells}] has no cells: write 1 or more`, written);
    line.takeMark("]", "an opened bracket is closed with ']', as in [5]");
    if (cells > MOST_CELLS) throw this.error(`the program has more than ${MOST_CELLS} cells`, token);
    return { kind: "run", token, codes: Array(cells).fill(0) };
  }

  directive(line, token) {
    if (token.text === "@def") this.beginMacro(line, token);
    else if (token.text === "@end") this.endMacro(token);
    else if (token.text === "@pool") {
      if (this.macro) throw this.error("@pool cannot be in a macro", token);
      if (this.items.some(({ kind }) => kind === "pool")) {
        throw this.error("a second @pool: constants and scratch cells have one place", token);
      }
      this.add({ kind: "pool", token });
    } else {
      const operands = [];
      while (!ends(line)) {
        if (line.secondIs(":")) throw line.wrong("an operand of a macro has no label");
        operands.push(this.operand(line));
        if (operands.at(-1).some(({ kind }) => kind === "next")) {
          throw this.error(`'?' is not an operand of ${token.text}: in a macro it means another cell at every use; use a label`, token);
        }
      }
      this.add({ kind: "call", token, name: token.text.slice(1), operands });
      return;
    }
    if (!ends(line)) throw line.wrong(`${token.text} ends here; the next statement is on a new line or after ';'`);
  }

  beginMacro(line, token) {
    if (this.macro) throw this.error(`a macro within macro ${quoted(this.macro.token.text)}: close that with @end first`, token);
    const name = line.takeName("the name of a macro");
    if (this.macros.has(name.text)) throw this.error(`macro ${quoted(name.text)} is defined twice`, name);
    if (["def", "end", "pool"].includes(name.text)) {
      throw this.error(`@${name.text} is a word of the language: choose another name`, name);
    }
    const parameters = [];
    while (!ends(line)) {
      const parameter = line.takeName("a parameter");
      if (parameters.includes(parameter.text)) throw this.error(`parameter ${quoted(parameter.text)} occurs twice`, parameter);
      parameters.push(parameter.text);
    }
    this.macro = { token: name, parameters, items: [], labels: [] };
  }

  endMacro(token) {
    if (!this.macro) throw this.error("@end closes a macro, and none is open: it begins with @def", token);
    const { macro } = this;
    for (const item of macro.items.filter(({ kind }) => kind === "label")) {
      if (macro.labels.includes(item.name)) {
        throw this.error(`label ${quoted(item.name)} is declared twice in macro ${quoted(macro.token.text)}`, item.token);
      }
      macro.labels.push(item.name);
    }
    this.macros.set(macro.token.text, macro);
    this.macro = null;
  }

  /** A sum; after `=` the address of a cell that holds its value. */
  operand(line) {
    if (!line.at("=")) return this.sum(line, 0);
    const token = line.take();
    const value = this.sum(line, 0);
    if (value.some(({ kind }) => kind === "next")) throw this.error("'?' has no meaning in a constant: use a label", token);
    return [{ factor: 1, kind: "constant", token, constant: collected(value) }];
  }

  sum(line, depth) {
    const terms = this.term(line, depth);
    while (line.at("+", "-")) {
      const sign = line.take().text === "-" ? -1 : 1;
      terms.push(...times(this.term(line, depth), sign));
    }
    return terms;
  }

  term(line, depth) {
    let sign = 1;
    while (line.at("+", "-")) sign = line.take().text === "-" ? -sign : sign;
    const token = line.ahead;
    if (line.at("(")) {
      if (depth === MOST_DEPTH) throw line.wrong(`parentheses are at most ${MOST_DEPTH} deep`);
      line.take();
      const terms = this.sum(line, depth + 1);
      line.takeMark(")", "an opened parenthesis is closed with ')'");
      return times(terms, sign);
    }
    if (["number", "character"].includes(token.kind)) {
      const [value] = line.takeInteger("a value");
      if (value > 127 && token.kind === "character") {
        throw this.error(`${token.text} is more than one byte: write it as a string on a data line`, token);
      }
      return number(sign * value, token);
    }
    if (["name", "scratch"].includes(token.kind)) {
      line.take();
      return [{ factor: sign, kind: token.kind, token, name: token.text }];
    }
    if (line.takeIf("?")) return [{ factor: sign, kind: "next", token }];
    if (token.kind === "unclosed") {
      const rule = token.text.startsWith("'") ? "a character is 'a' or '\\n'" : "a string ends with a quote";
      throw this.error(`${quoted(token.text).slice(1, -1)} is not closed: ${rule}`, token);
    }
    throw line.wrong("an operand is a sum of numbers, labels and '?', such as 12, loop, ?+2 or (-1)");
  }
}

const ends = (line) => line.ahead.kind === "end" || line.at(";");

/** The cells of a statement without a dot: one or two are made an instruction, and more than three are data. */
function instruction(items, cells) {
  if (cells > OPERANDS) return items;
  const found = items.filter(isCells);
  const [first, second] = found;
  const last = found.at(-1);
  const made = items.map((item) => (item === second && second.kind === "cell" && first.kind === "cell" ? { ...item, written: true } : item));
  if (cells === 1) {
    const same = first.kind === "cell" ? oneLater(first.terms) : number(first.codes[0], first.token);
    made.push({ kind: "cell", terms: same, token: last.token, written: true });
  }
  if (cells < OPERANDS) made.push({ kind: "cell", terms: [{ factor: 1, kind: "next", token: first.token }], token: first.token });
  return made;
}

/** The same number in the next cell, where `?` is one more. */
function oneLater(terms) {
  const nexts = terms.filter(({ kind }) => kind === "next").reduce((sum, { factor }) => sum + factor, 0);
  return nexts ? [...terms, ...number(-nexts, terms[0].token)] : terms;
}

/** Writes macros out; `constants` has the sum of every constant by its number. */
class Expander {
  constructor(parsed, library) {
    for (const [name, { token }] of parsed.macros) {
      if (library.has(name)) throw parsed.error(`macro ${quoted(name)} is one of the standard macros: choose another name`, token);
    }
    Object.assign(this, { parsed, macros: new Map([...library, ...parsed.macros]), uses: 0, cells: 0, within: [], made: [],
      numbers: new Map(), constants: [] });
  }

  error(message, token) { return this.parsed.error(message, token); }

  expand(items, scope) {
    for (const item of items) {
      if (item.kind === "call") this.call(item, scope);
      else if (isCells(item)) {
        const line = (this.within[0]?.token ?? item.token).line;
        this.cells += count([item]);
        if (this.cells > MOST_CELLS) {
          throw this.error(`the program has more than ${MOST_CELLS} cells`, this.within[0]?.token ?? item.token);
        }
        if (item.kind === "cell") this.made.push({ ...item, terms: this.sum(item.terms, scope), line });
        else for (const code of item.codes) this.made.push({ kind: "cell", terms: number(code, item.token), token: item.token, line });
      } else if (item.kind === "label") this.made.push({ ...item, name: scope.labels.get(item.name) ?? item.name });
      else this.made.push(item);
    }
    return this.made;
  }

  call(call, scope) {
    const { token, name, operands } = call;
    const macro = this.macros.get(name);
    if (!macro) {
      const near = didYouMean(token.text, [...this.macros.keys()].map((one) => `@${one}`));
      throw this.error(`unknown macro ${quoted(token.text)}${near}: it is neither a standard macro nor defined with @def`, token);
    }
    if (operands.length !== macro.parameters.length) {
      const form = [`@${name}`, ...macro.parameters.slice(0, 10), ...(macro.parameters.length > 10 ? ["..."] : [])].join(" ");
      throw this.error(`@${name} has ${operands.length} operands here, and takes ${macro.parameters.length}: write ${form}`, token);
    }
    if (this.within.some((outer) => outer.name === name)) {
      throw this.error(`macro ${quoted(name)} uses itself, which has no end: use a routine and @call`, token);
    }
    if (this.within.length === MOST_DEPTH) throw this.error(`macros use each other at most ${MOST_DEPTH} deep`, token);
    this.uses += 1;
    if (this.uses > MOST_CELLS) throw this.error(`macros are used more than ${MOST_CELLS} times`, this.within[0]?.token ?? token);
    const use = this.uses;
    const inner = { parameters: new Map(macro.parameters.map((one, i) => [one, this.sum(operands[i], scope)])),
      labels: new Map(macro.labels.map((one) => [one, `${one}~${use}`])) };
    this.within.push(call);
    this.expand(macro.items, inner);
    this.within.pop();
  }

  /** A sum as it is in one use of a macro. */
  sum(terms, scope) {
    const found = terms.flatMap((term) => {
      if (term.kind === "constant") return [{ ...term, number: this.constant(this.sum(term.constant, scope)), constant: undefined }];
      if (term.kind === "name" && scope.parameters.has(term.name)) return times(scope.parameters.get(term.name), term.factor);
      if (term.kind === "name" && scope.labels.has(term.name)) return [{ ...term, name: scope.labels.get(term.name) }];
      return [term];
    });
    return found.length === 1 ? found : collected(found);
  }

  constant(value) {
    const key = keyOf(value);
    if (!this.numbers.has(key)) {
      this.numbers.set(key, this.constants.length);
      this.constants.push(value);
    }
    return this.numbers.get(key);
  }
}

const poolName = (term) => (term.kind === "scratch" ? term.name : `=~${term.number}`);

/** The items with constants and scratch cells in their place: at `@pool`, else behind the last cell. */
function withPool(items, constants) {
  const pool = new Map();
  const fill = (terms) => {
    for (const term of terms) {
      if (["constant", "scratch"].includes(term.kind) && !pool.has(poolName(term))) {
        const value = term.kind === "constant" ? constants[term.number] : number(0, term.token);
        fill(value);
        pool.set(poolName(term), { kind: "cell", terms: value, token: term.token, line: 0 });
      }
    }
  };
  for (const item of items) if (item.kind === "cell") fill(item.terms);
  const cells = [...pool].flatMap(([name, cell]) => [{ kind: "label", token: cell.token, name }, cell]);
  const mark = items.findIndex(({ kind }) => kind === "pool");
  const place = mark >= 0 ? mark : items.findLastIndex(({ kind }) => kind === "cell") + 1;
  return [...items.slice(0, place), ...cells, ...items.slice(place)].filter(({ kind }) => kind !== "pool");
}

let standard = null;

/** The words of a text, its labels, and the line that each word comes from. `library` is the text of the standard macros. */
export function assembleAsq(content, bits, library, { behind = false } = {}) {
  standard ??= new Parser(new Text(library)).parse().macros;
  const parsed = new Parser(new Text(content)).parse();
  const expander = new Expander(parsed, standard);
  const items = expander.expand(parsed.items, { parameters: new Map(), labels: new Map() });
  for (const { kind, written, terms } of items) {
    if (kind === "cell" && written && terms.length === 1 && terms[0].kind === "constant") {
      throw parsed.error("a constant would be changed here: copy it to a cell of your own", terms[0].token);
    }
  }
  const cells = [];
  const labels = new Map();
  for (const item of withPool(items, expander.constants)) {
    if (item.kind === "cell") cells.push(item);
    else if (labels.has(item.name)) throw parsed.error(`label ${quoted(item.token.text)} is declared twice`, item.token);
    else labels.set(item.name, cells.length);
  }
  const valueOf = (term, address) => {
    if (term.kind === "number") return term.number;
    if (term.kind === "next") return address + 1;
    const name = term.kind === "name" ? term.name : poolName(term);
    if (labels.has(name)) return labels.get(name);
    const known = [...labels.keys()].filter((label) => !"=$".includes(label[0]) && !label.includes("~"));
    throw parsed.error(`unknown label ${quoted(term.token.text)}${didYouMean(term.token.text, known)}: declare it before a cell, as \`name:\``,
      term.token);
  };
  const words = cells.map(({ terms, token }, address) => {
    const word = terms.reduce((sum, term) => sum + term.factor * valueOf(term, address), 0);
    if (word < -(2 ** (bits - 1)) || word >= 2 ** bits) {
      throw parsed.error(`${word} does not fit a word of ${bits} bits: the range is ${-(2 ** (bits - 1))} to ${2 ** bits - 1}`, token);
    }
    return word;
  });
  if (!words.length) throw new Error("the program is empty: it needs at least one instruction or data line");
  const own = [...labels].filter(([name, at]) => !name.includes("~") && (behind || at < words.length));
  return { words, labels: new Map(own), lines: cells.map(({ line }) => line), source: parsed.text.rows };
}
