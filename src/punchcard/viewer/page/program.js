/** The program: its text with the current line and breakpoints, and what it reads and writes. */
import { hint, make } from "./elements.js";

/** Of a long program so many lines around the current one are there; the rest comes when it is reached. */
const LINES = 600;

export class Program {
  constructor(view, act) {
    this.view = view;
    this.act = act;
    this.lines = view.about.program.lines;
    this.byLine = new Map();
    for (const { number, line } of view.about.program.instructions) {
      if (line !== null) this.byLine.set(line, [...(this.byLine.get(line) ?? []), number]);
    }
    this.list = make("ol", { class: "lines", tabindex: 0, "aria-label": "The program" });
    this.input = make("pre", { tabindex: 0, "aria-label": "Input" });
    this.output = make("pre", { tabindex: 0, "aria-label": "Output", "aria-live": "polite" });
    const streams = view.about.ports ? [make("h2", {}, "Input"), this.input, make("h2", {}, "Output"), this.output] : [];
    const left = view.about.program.left_out;
    this.element = make("section", { class: "program", "aria-label": "Program" }, make("h2", {}, view.about.program.name),
      this.list, left ? hint(`${left.toLocaleString("en")} more lines are not shown`) : null,
      make("div", { class: "streams" }, streams));
  }

  draw() {
    const { line, output, read } = this.view.state;
    const first = this.lines.length <= 2 * LINES ? 1 : Math.max(1, (line ?? 1) - LINES);
    const far = this.lines.length > 2 * LINES && Math.abs(first - this.first) > LINES / 2;
    if (this.first === undefined || far) this.fill(first);
    for (const [number, row] of this.rows) {
      const set = (this.byLine.get(number) ?? []).some((one) => this.view.breakpoints.has(one));
      row.mark?.setAttribute("aria-pressed", set);
      if (number === line) row.element.setAttribute("aria-current", "true");
      else row.element.removeAttribute("aria-current");
    }
    if (line !== this.line) this.reveal(line);
    this.line = line;
    if (!this.view.about.ports) return;
    const given = this.view.about.input ?? "";
    const unread = given.slice(read) || (given ? "" : "none");
    this.input.replaceChildren(make("span", { class: "read" }, given.slice(0, read)), unread);
    if (this.output.textContent !== output) {
      this.output.textContent = output;
      this.output.scrollTop = this.output.scrollHeight;
    }
  }

  fill(first) {
    this.first = first;
    this.rows = new Map();
    const last = Math.min(this.lines.length, this.lines.length <= 2 * LINES ? this.lines.length : first + 2 * LINES);
    for (let number = first; number <= last; number++) {
      const instructions = this.byLine.get(number);
      const set = instructions ? () => this.act.breakpoint(instructions) : null;
      const name = `Breakpoint at line ${number}`;
      const mark = instructions && make("button", { type: "button", class: "mark", "aria-pressed": "false",
        "aria-label": name, title: name, "data-place": number, click: set });
      const text = make("code", { click: set, title: this.lines[number - 1].trim() }, this.lines[number - 1] || " ");
      const element = make("li", { class: instructions ? "can" : "" }, mark ?? make("span", { class: "mark" }),
        make("span", { class: "number", "aria-hidden": "true" }, String(number)), text);
      this.rows.set(number, { element, mark });
    }
    this.list.replaceChildren(...[...this.rows.values()].map((row) => row.element));
  }

  /** Scroll the list, and nothing around it, to the current line. */
  reveal(line) {
    const row = this.rows.get(line)?.element;
    if (!row) return;
    const top = row.offsetTop - this.list.offsetTop;
    const { scrollTop, clientHeight } = this.list;
    const seen = top >= scrollTop + row.offsetHeight && top <= scrollTop + clientHeight - 2 * row.offsetHeight;
    if (!seen) this.list.scrollTop = top - clientHeight / 3;
  }
}
