/** The playground: a program that is typed or chosen, and its run below. The program is in the address, after the #. */
import { make } from "./elements.js";
import { inflated } from "./base64.js";
import { sourceOf } from "./sources.js";
import { assembleAsq } from "./asq.js";
import { assembleBrainfuck } from "./brainfuck.js";
import { runImage } from "./images.js";
import { assembleSubleq, columnsOf, runSubleq } from "./subleq.js";
import { assembleTuring, runTuring, sizesOf } from "./turing.js";

/** Text as letters that an address may hold, and back. */
const packed = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const unpacked = (text) => new TextDecoder("utf-8", { fatal: true })
  .decode(Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.codePointAt(0)));
const bitsFor = (count) => Math.ceil(Math.log2(Math.max(1, count)));
const IMAGE_BITS = 16;
/** So much of the card is seen below the sentence, in pixels. */
const ROOM = 160;

/** How a page reads the words of an image, and which machine it needs; `assemble` gives {words, labels, lines, source}. */
const image = (assemble) => ({ family: "images", reads: true, bits: [IMAGE_BITS], assemble,
  needs: ({ words }, _, { least }) => [IMAGE_BITS, Math.max(least, bitsFor(words.length))],
  tooLarge: ({ words }, most) => `the program has ${words.length} words, and this page has room for ${most}`,
  run: (program, template, [bits, length], { name, input }) => runImage(program, template, { bits, length, name, input }) });

/** The languages that this page can read. `data` is what came with the page. */
const LANGUAGES = {
  subleq: { title: "SUBLEQ",
    help: "subleq a, b, c: subtract cell a from cell b; if the result is not positive, go to c. Without c: to the next instruction.",
    family: "subleq", bits: [8, 16], assemble: (text, bits) => assembleSubleq(text, bits),
    needs: (program, bits, { least }) => [bits, Math.max(least, bitsFor(columnsOf(program)))],
    tooLarge: (program, most) => `the program needs a card of ${columnsOf(program)} columns, and this page has room for ${most}`,
    run: (program, template, [bits], { name }) => runSubleq(program, template, { bits, name }) },
  asq: { title: "asq: SUBLEQ with one memory",
    help: "a b c: subtract word a from word b; if the result is not positive, go to c. @name is a macro, a name with a colon is a label, and words after a dot are data.",
    ...image((text, bits, data) => assembleAsq(text, bits, data.library)) },
  brainfuck: { title: "Brainfuck",
    help: "+ and - change a cell, > and < move to another, [ and ] repeat until the cell is 0, a dot writes it and a comma reads it.",
    ...image((text, bits, data) => assembleBrainfuck(text, bits, data.brainfuck, data.library)) },
  turing: { title: "Turing machine",
    help: "state symbol -> symbol L, S or R, state: what to write, where to move, what to do next. The head begins in brackets on the tape.",
    family: "turing", bits: [], assemble: (text) => assembleTuring(text),
    needs: (program) => sizesOf(program),
    tooLarge: ({ states, symbols, tape }, most) => `the machine has ${states.length} states, ${symbols.length} symbols and ${tape.length} squares, `
      + `and this page has room for ${most}`,
    run: (program, template, _, { name }) => runTuring(program, template, { name }) },
};

export class Playground {
  constructor(element, data, show) {
    Object.assign(this, { element, data, show, machines: {} });
    element.classList.add("punchcard", "playground");
    this.language = make("select", { "aria-label": "The language", change: () => this.change() },
      Object.entries(LANGUAGES).map(([name, { title }]) => make("option", { value: name }, title)));
    this.bits = make("select", { "aria-label": "Bits of a word", change: () => this.run() });
    this.look = make("p", { class: "look" });
    this.fixed = make("p", { class: "hint fixed" });
    this.help = make("p", { class: "hint" });
    const enter = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run(); };
    this.text = make("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Your program",
      rows: 8, keydown: enter });
    this.input = make("textarea", { spellcheck: "false", autocapitalize: "off", "aria-label": "Its input", rows: 2, class: "input", keydown: enter });
    this.given = make("label", { class: "given" }, make("span", {}, "Input"), this.input);
    this.problem = make("div", { class: "problem", role: "alert", hidden: true });
    this.link = make("button", { type: "button", click: () => this.copy() }, "copy link");
    this.stage = make("div", { class: "stage" });
    this.cards = data.gallery.map((entry, i) => make("button", { type: "button", class: "entry", "aria-pressed": "false", "data-place": `entry ${i}`,
      click: () => this.load(entry).then(() => this.reveal()) }, this.picture(entry), make("span", { class: "title" }, entry.title),
    make("span", { class: "hint" }, entry.kind)));
    this.strip = make("nav", { class: "gallery", "aria-label": "The gallery" }, this.cards);
    this.editor = make("section", { class: "editor" }, make("div", { class: "choose" }, this.language, this.bits,
      make("button", { type: "button", class: "main", click: () => this.run().then(() => this.reveal()), title: "Run it (Ctrl+Enter)" }, "Run"), this.link),
    this.help, this.text, this.given, this.problem);
    element.replaceChildren(make("header", { class: "bar" }, make("h1", {}, "Punchcard playground"),
      make("p", {}, "A transformer whose weights are set by formula runs your program. It runs in this page.")),
    this.strip, this.look, this.fixed, this.editor, this.stage);
    addEventListener("hashchange", () => { if (window.location.hash !== this.hash) this.open(); });
    this.ready = this.open();
  }

  picture({ picture }) {
    const found = make("span", { class: "picture", "aria-hidden": "true" });
    found.innerHTML = picture ?? ""; // an SVG that came with the page
    return found;
  }

  /** What the address has, or the first program of the gallery. */
  open() {
    const given = new URLSearchParams(window.location.hash.slice(1));
    const shown = this.data.gallery.find(({ id }) => id === given.get("show"));
    if (shown) return this.load(shown);
    const language = Object.keys(LANGUAGES).find((name) => given.has(name));
    if (!language) return this.load(this.data.gallery[0]);
    this.settle(language, given.get("bits"));
    this.mark(null);
    try {
      this.text.value = unpacked(given.get(language));
      this.input.value = given.has("input") ? unpacked(given.get("input")) : "";
    } catch {
      return this.fail(new Error("the address has no program that can be read: was it cut?"));
    }
    return this.run();
  }

  /** Another language: with its first program of the gallery, unless somebody has written one here. */
  change() {
    const example = this.data.gallery.find(({ language }) => language === this.language.value);
    const isOwn = this.text.value.trim() && this.text.value !== this.title?.text;
    return isOwn ? this.settle() : this.load(example);
  }

  /** The controls of a language. */
  settle(language = this.language.value, bits = null) {
    this.language.value = language;
    const { bits: sizes, reads, help, family } = LANGUAGES[language];
    this.help.textContent = `${help} ${this.data.rooms[family]}`;
    this.bits.replaceChildren(...sizes.map((size) => make("option", { value: size }, `${size}-bit words`)));
    this.bits.hidden = sizes.length < 2;
    if (sizes.includes(Number(bits))) this.bits.value = bits;
    this.given.hidden = !reads;
    this.editor.hidden = false;
    this.text.readOnly = false;
  }

  /** A program of the gallery: to be changed and run, or with its machine made beforehand, to be looked at. */
  load(entry) {
    this.title = entry;
    this.mark(entry);
    if (!entry.text) return this.display(entry);
    this.settle(entry.language, entry.bits);
    this.text.value = entry.text;
    this.input.value = entry.input ?? "";
    return this.run();
  }

  mark(entry) {
    this.data.gallery.forEach((one, i) => this.cards[i].setAttribute("aria-pressed", String(one === entry)));
    const chosen = this.cards[this.data.gallery.indexOf(entry)];
    if (chosen) this.strip.scrollLeft = chosen.offsetLeft - this.strip.offsetLeft - (this.strip.clientWidth - chosen.offsetWidth) / 2;
    this.look.textContent = entry?.look ?? "";
    this.look.hidden = !entry;
    this.fixed.textContent = `The page cannot compile ${entry?.kind}: this program was prepared, and cannot be changed here. `
      + "punchcard view opens one of your own.";
    this.fixed.hidden = !entry || Boolean(entry.text);
  }

  /** A run that was prepared: its text cannot be changed here. */
  async display(entry) {
    const turn = this.begin();
    this.editor.hidden = true;
    this.problem.hidden = true;
    this.address(`#show=${entry.id}`);
    return this.put(entry.image ? await this.prepared(entry) : await inflated(entry.view), turn);
  }

  /** A program that was compiled to words beforehand. */
  async prepared({ image: { labels, ...words }, title }) {
    const { sizes, least } = await this.machinesOf("images");
    const length = Math.max(least, bitsFor(words.words.length));
    return runImage({ ...words, labels: new Map(labels) }, sizes[`${IMAGE_BITS}/${length}`], { bits: IMAGE_BITS, length, name: title, input: "" });
  }

  /** Machines of a family, by the sizes that they are for. */
  async machinesOf(family) {
    this.machines[family] ??= inflated(this.data.machines[family]);
    return this.machines[family];
  }

  /** The program of a text. */
  read(language, text, bits = LANGUAGES[language].bits[0]) { return LANGUAGES[language].assemble(text, bits, this.data); }

  /** Assemble, punch and show. What is wrong is said with its line and a caret. */
  async run() {
    const turn = this.begin();
    const language = LANGUAGES[this.language.value];
    const bits = Number(this.bits.value) || language.bits[0];
    const [text, input] = [this.text.value, language.reads ? this.input.value : ""];
    try {
      const program = this.read(this.language.value, text, bits);
      const { sizes, least, most } = await this.machinesOf(language.family);
      if (turn !== this.turn) return this.view;
      const key = language.needs(program, bits, { least });
      const template = sizes[key.join("/")];
      if (!template) throw new Error(`${language.tooLarge(program, most)}: run it with \`punchcard view\``);
      this.problem.hidden = true;
      this.address(`#${language.bits.length > 1 ? `bits=${bits}&` : ""}${input ? `input=${packed(input)}&` : ""}${this.language.value}=${packed(text)}`);
      await this.put(language.run(program, template, key, { name: this.name(), input }), turn);
    } catch (error) {
      this.fail(error);
    }
    return this.view;
  }

  address(hash) {
    this.hash = hash;
    history.replaceState(null, "", hash);
  }

  /** What was asked for last is shown: others may be unpacked only after it. */
  begin() {
    this.turn = (this.turn ?? 0) + 1;
    return this.turn;
  }

  async put(data, turn) {
    if (turn !== this.turn) return this.view;
    const place = make("div", {});
    this.stage.replaceChildren(place);
    const view = await this.show(place, sourceOf(data));
    if (turn === this.turn) this.view = view;
    return this.view;
  }

  /** What the program is called: as in the gallery, until somebody changes it. */
  name() { return this.title?.text === this.text.value ? this.title.title : "your program"; }

  fail(error) {
    this.problem.hidden = false;
    this.stage.replaceChildren();
    const place = error.shown ? make("pre", {}, error.shown) : null; // a line, and a caret below it
    this.problem.replaceChildren(make("p", {}, error.message), ...(place ? [place] : []));
    if (!place) return;
    this.text.scrollTop = (error.line - 3) * parseFloat(getComputedStyle(this.text).lineHeight);
    const longest = Math.max(...error.shown.split("\n").map(({ length }) => length));
    place.scrollLeft = error.column / longest * place.scrollWidth - place.clientWidth / 2;
  }

  /** Bring the story of a run that was asked for into sight, or what is wrong. */
  reveal() {
    const wanted = this.problem.hidden ? this.stage.querySelector(".sentence") : this.problem;
    if (!wanted || wanted.getBoundingClientRect().bottom <= window.innerHeight - ROOM) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    (this.problem.hidden ? this.stage : this.problem).scrollIntoView({ block: this.problem.hidden ? "start" : "nearest", behavior: calm ? "auto" : "smooth" });
  }

  /** The link to the clipboard; where a browser does not allow that, the address bar has it. */
  async copy() {
    const isCopied = await navigator.clipboard?.writeText(window.location.href).then(() => true, () => false);
    this.link.textContent = isCopied ? "copied" : "it is in the address bar";
    setTimeout(() => { this.link.textContent = "copy link"; }, 2500);
  }
}
