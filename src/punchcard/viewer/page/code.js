/** The instructions around the current one: their addresses, what they are, and the lines of the source that they come from. */
import { hint, make } from "./elements.js";

/** So many instructions are shown before the current one, and after it. */
const AROUND = 24;

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
    const first = Math.max(0, at - AROUND);
    const shown = instructions.slice(first, at + AROUND + 1);
    const rows = shown.map(({ number, text, line }) => make("tr", {
      "aria-current": number === state.program_counter ? "true" : null },
    make("th", { scope: "row", class: "figure" }, this.address(number)), make("td", {}, make("code", {}, text)),
    make("td", { class: "hint" }, line === null ? "" : `${line}: ${(lines[line - 1] ?? "").trim()}`)));
    const left = instructions.length - shown.length;
    return [make("table", { class: "code" }, make("caption", {}, "instructions, and the lines that they come from"),
      make("tbody", {}, rows)), left ? hint(`${left.toLocaleString("en")} more instructions are not shown`) : null];
  }

  address(number) {
    return this.view.about.counter_base === 16 ? `0x${number.toString(16).padStart(4, "0")}` : String(number);
  }
}
