/** The playground: a program that is typed or chosen, and its run below. The program is in the address, after the #. */
import { make } from "./elements.js";
import { sourceOf } from "./sources.js";
import { assemble, columnsOf, runOf } from "./subleq.js";

/** Text as letters that an address may hold, and back. */
const packed = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const unpacked = (text) => new TextDecoder("utf-8", { fatal: true })
  .decode(Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.codePointAt(0)));

export class Playground {
  constructor(element, data, show) {
    Object.assign(this, { element, data, show });
    element.classList.add("punchcard", "playground");
    const choose = () => this.load(data.gallery[this.gallery.value]);
    this.gallery = make("select", { "aria-label": "A program of the gallery", change: choose },
      data.gallery.map(({ title }, i) => make("option", { value: i }, title)));
    this.bits = make("select", { "aria-label": "Bits of a word", change: () => this.run() },
      data.bits.map((bits) => make("option", { value: bits }, `${bits}-bit words`)));
    this.look = make("p", { class: "look" });
    this.text = make("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "The program",
      rows: 10, keydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run(); } });
    this.problem = make("pre", { class: "problem", role: "alert", hidden: true });
    this.link = make("button", { type: "button", click: () => this.copy() }, "copy link");
    this.stage = make("div", { class: "stage" });
    element.replaceChildren(make("header", { class: "bar" }, make("h1", {}, "Punchcard playground"),
      make("p", {}, "A transformer whose weights are set by formula runs your program. It runs in this page.")),
    make("section", { class: "editor" }, make("div", { class: "choose" }, this.gallery, this.bits,
      make("button", { type: "button", class: "main", click: () => this.run(), title: "Run it (Ctrl+Enter)" }, "Run"), this.link),
    this.look, this.text, this.problem), this.stage);
    addEventListener("hashchange", () => { if (window.location.hash !== this.hash) this.open(); });
    this.ready = this.open();
  }

  /** What the address has, or the first program of the gallery. */
  open() {
    const given = new URLSearchParams(window.location.hash.slice(1));
    if (!given.has("subleq")) return this.load(this.data.gallery[0]);
    try {
      this.text.value = unpacked(given.get("subleq"));
    } catch {
      return this.fail(new Error("the address has no program that can be read: was it cut?"));
    }
    if (this.data.bits.includes(Number(given.get("bits")))) this.bits.value = given.get("bits");
    this.look.textContent = "";
    return this.run();
  }

  load({ text, look, bits, title }) {
    this.title = { text, title };
    this.text.value = text;
    this.bits.value = bits;
    this.look.textContent = look;
    return this.run();
  }

  /** Assemble, punch and show. What is wrong is said with its line and a caret. */
  async run() {
    const bits = Number(this.bits.value);
    try {
      const program = assemble(this.text.value, bits);
      const columns = columnsOf(program);
      const length = Math.max(this.data.least, Math.ceil(Math.log2(columns)));
      const template = this.data.machines[`${bits}/${length}`];
      if (!template) {
        throw new Error(`the program needs a card of ${columns} columns, and this page has room for ${this.data.most}: `
          + "run it with `punchcard view`");
      }
      this.problem.hidden = true;
      this.hash = `#bits=${bits}&subleq=${packed(this.text.value)}`;
      history.replaceState(null, "", this.hash);
      const place = make("div", {});
      this.stage.replaceChildren(place);
      this.view = await this.show(place, sourceOf(runOf(program, template, bits, this.name())));
    } catch (error) {
      this.fail(error);
    }
    return this.view;
  }

  /** What the program is called: as in the gallery, until somebody changes it. */
  name() { return this.title?.text === this.text.value ? this.title.title : "your program"; }

  fail(error) {
    this.problem.hidden = false;
    this.problem.textContent = error.shown ? `${error.message}\n\n${error.shown}` : error.message;
    this.stage.replaceChildren();
  }

  async copy() {
    await navigator.clipboard?.writeText(window.location.href).catch(() => null);
    this.link.textContent = "copied";
    setTimeout(() => { this.link.textContent = "copy link"; }, 1500);
  }
}
