/** The disassembly around the current instruction: addresses, encodings and symbols, and the lines of the source. */
import { counterText } from "./decode.js";
import { hint, make } from "./elements.js";

/** So many instructions are shown before the current one, and after it. */
const [BEFORE, AFTER] = [8, 40];

export class Code {
  constructor(view, act) {
    this.view = view;
    this.act = act;
  }

  async content() {
    const { about, state } = this.view;
    const { instructions, lines } = about.program;
    if (!instructions.length) return [hint("This machine lists no instructions.")];
    const next = instructions.findIndex(({ number }) => number >= (state.program_counter ?? 0));
    const at = next < 0 ? instructions.length - 1 : next;
    const first = Math.max(0, at - BEFORE);
    const shown = instructions.slice(first, at + AFTER + 1);
    const isCoded = shown.some(({ word }) => word);
    const wide = isCoded ? 4 : 3;
    let last = null;
    const rows = shown.flatMap(({ number, text, line, word, symbol }) => {
      const source = line === null || line === last ? "" : `${line}: ${(lines[line - 1] ?? "").trim()}`; // once for a run of words
      last = line;
      const title = symbol ? [make("tr", { class: "symbol" }, make("th", { scope: "rowgroup", colspan: wide }, `${symbol}:`))] : [];
      return [...title, make("tr", { "aria-current": number === state.program_counter ? "true" : null },
        make("th", { scope: "row", class: "figure" }, this.address(number)),
        isCoded ? make("td", { class: "word" }, make("code", {}, word ?? "")) : null,
        make("td", {}, make("code", {}, text)), make("td", { class: "hint" }, source))];
    });
    const left = instructions.length - shown.length;
    return [make("table", { class: "code" }, make("caption", {}, isCoded ? "disassembly, and the lines that it comes from" : "instructions, and the lines that they come from"),
      make("tbody", {}, rows)), left ? hint(`${left.toLocaleString("en")} more instructions are not shown`) : null];
  }

  address(number) { return counterText(this.view.about, number); }
}
