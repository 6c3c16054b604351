/** The line of time: buttons, the slider over the run, the steps of one loop, and searches. */
import { counterText } from "./decode.js";
import { button, draw, make, refill, split } from "./elements.js";

const ICONS = {
  first: "M3 3h2v10H3z M13 3v10L6 8z", last: "M11 3h2v10h-2z M3 3v10l7-5z", back: "M11 3v10L4 8z", next: "M5 3v10l7-5z",
  fastBack: "M8 3v10L2 8z M14 3v10L8 8z", fastNext: "M2 3v10l6-5z M8 3v10l6-5z", play: "M4 2.5v11l9.5-5.5z",
  pause: "M4 3h3v10H4z M9 3h3v10H9z",
};
export const SPEEDS = [1, 2, 4, 8, 16, 32, 60];
export const UNITS = ["stage", "layer", "loop"];
const FINDS = [["halt", "h"], ["port", "o"], ["branch", "j"], ["breakpoint", "k"]];

function icon(name) {
  return draw("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, draw("path", { d: ICONS[name] }));
}

const ENDINGS = { halted: "The program has halted.", fault: "The run ends with a fault.",
  steps: "The limit of steps is reached.", error: "The run ends with an error." };

function where(loop, layer, stage) {
  if (stage) return `Loop ${loop + 1}, layer ${layer + 1}: attention`;
  if (layer) return `Loop ${loop + 1}, layer ${layer}: ReLU`;
  return loop ? `After loop ${loop}` : "Before loop 1";
}

/** What a loop executes. A design that fetches at the end of a loop has nothing to execute in its first one. */
function executed(about, { program_counter: at, instruction, loop, ended }) {
  if (instruction !== null) return ` · instruction ${counterText(about, at)} `;
  if (!about.counter || ended) return "";
  if (!loop) return " · fetches the first instruction";
  return at === null ? "" : ` · program counter ${counterText(about, at)}`;
}

export class Time {
  constructor(view, act) {
    this.view = view;
    this.play = button(icon("play"), "Play", "space", () => act.play());
    this.play.classList.add("main");
    const moves = make("div", { class: "buttons", role: "group", "aria-label": "Move through the run" },
      button(icon("first"), "Start of the run", "Home", () => act.go(0)),
      button(icon("fastBack"), "Back one loop", "P", () => act.step(-1, "loop")),
      button(icon("back"), "Back", "p", () => act.step(-1)), this.play,
      button(icon("next"), "Next", "n", () => act.step(1)),
      button(icon("fastNext"), "Next loop", "N", () => act.step(1, "loop")),
      button(icon("last"), "End of the run", "End", () => act.end()));
    this.units = UNITS.map((unit) => make("input", { type: "radio", name: `${view.id}-unit`, value: unit,
      checked: unit === view.unit, change: () => act.unit(unit) }));
    const names = { stage: "half layer", layer: "layer", loop: "loop" };
    const unit = make("fieldset", { class: "units" }, make("legend", {}, "a step is a"),
      ...this.units.map((input) => make("label", {}, input, make("span", {}, names[input.value]))));
    this.pace = make("output", {});
    this.speed = make("input", { type: "range", min: 0, max: SPEEDS.length - 1, value: view.speed,
      "aria-label": "Steps a second while playing", input: () => act.speed(Number(this.speed.value)) });
    const find = ([what, key]) => make("button", { type: "button", title: `Next ${what} (${key}); the one before with shift`,
      "aria-label": `To the next ${what}`, click: (event) => act.find(what, !event.shiftKey) }, what);
    const finds = make("div", { class: "finds", role: "group", "aria-label": "Search" },
      make("span", { class: "hint" }, "to the next"),
      FINDS.filter(([what]) => ({ port: view.about.ports, halt: true })[what] ?? view.about.counter).map(find));
    const speed = make("label", { class: "speed" }, make("span", { class: "hint" }, "speed"), this.speed, this.pace);
    this.loop = make("input", { type: "number", min: 0, class: "loop", "aria-label": "Go to loop", title: "Go to a loop (g)",
      change: () => act.go(2 * view.about.layers.length * Math.max(0, Math.floor(Number(this.loop.value) || 0))) });
    this.total = make("span", { class: "total" });
    this.slider = make("input", { type: "range", min: 0, value: 0, class: "run", "aria-label": "The run, loop by loop",
      input: () => act.go(2 * view.about.layers.length * Number(this.slider.value)) });
    this.steps = make("div", { class: "steps", role: "group", "aria-label": "The steps of this loop" });
    this.told = make("p", { class: "told" });
    this.act = act;
    this.more = make("button", { type: "button", class: "details", title: "Formulas, attention, weights, searches, speed (d)",
      "aria-expanded": "false", click: () => act.details() }, "details");
    this.element = make("section", { class: "time", "aria-label": "Time" },
      make("div", { class: "controls" }, moves, make("label", { class: "goto" }, "loop", this.loop, this.total), this.slider,
        this.more),
      make("div", { class: "controls expert" }, unit, speed, finds));
    this.sentence = make("p", { class: "sentence", role: "status" });
    this.story = make("section", { class: "story", "aria-label": "What happened" },
      make("div", { class: "inside" }, this.steps, this.told), this.sentence);
  }

  draw() {
    const { view } = this;
    const { about, state, moment } = view;
    const layers = about.layers.length;
    const { loop, layer, stage } = split(moment, layers);
    const now = Math.ceil(moment / (2 * layers)); // the loop that the sentence is about
    const known = state.loops ?? Math.max(state.known_loops ?? 0, now, view.known);
    this.slider.max = known;
    this.slider.value = now;
    this.slider.setAttribute("aria-valuetext", `loop ${now} of ${known}`);
    if (document.activeElement !== this.loop) this.loop.value = now;
    const count = known.toLocaleString("en");
    this.total.textContent = state.loops === null ? (known > now ? `of at least ${count}` : "") : `of ${count}`;
    this.units.forEach((input) => { input.checked = input.value === view.unit; });
    this.speed.value = view.speed;
    this.pace.textContent = `${SPEEDS[view.speed]}/s`;
    this.play.replaceChildren(icon(view.playing ? "pause" : "play"));
    this.play.setAttribute("aria-label", view.playing ? "Pause" : "Play");
    this.more.setAttribute("aria-expanded", view.details);
    this.inside(loop, layer, stage);
    this.tellStory(state.story ?? "");
    this.told.replaceChildren(make("b", {}, where(loop, layer, stage)),
      state.ended ? make("em", {}, ` ${ENDINGS[state.ended] ?? `The run has ended: ${state.ended}.`}`) : "",
      executed(about, state), state.instruction ? make("code", {}, state.instruction.split(/[;#]/)[0].trim() || state.instruction) : "");
    this.told.title = this.told.textContent;
  }

  /** The sentence, with heads in the colours of their arrows. */
  tellStory(story) {
    const text = story.replace(/(^|[^\w])-(?=\d)/g, "$1−");
    const heads = /\b[Hh]ead \d+\b|\b[Hh]eads \d+(?:(?:, | and )\d+\b)*/g; // "heads 1, 2 and 3" are three
    const parts = text.split(heads).flatMap((before, i, all) => [new Text(before),
      ...(i + 1 < all.length ? this.headNames(text.match(heads)[i]) : [])]);
    refill(this.sentence, ...parts.filter((one) => one.textContent));
  }

  headNames(list) {
    return list.split(/(?<=\d)(, | and )/).map((one, i) => (i % 2 ? new Text(one)
      : make("span", { class: `head-name h${(one.match(/\d+/) - 1) % 4}` }, one)));
  }

  /** The loop as a row of steps; the one whose result is shown is marked. */
  inside(loop, layer, stage) {
    const { layers } = this.view.about;
    const begin = 2 * layers.length * loop;
    const at = 2 * layer + stage;
    const one = (end, text, name, kind) => make("button", { type: "button", class: `step ${kind}`, "data-place": end,
      title: name, "aria-label": name, "aria-current": end === at ? "step" : null,
      click: () => this.act.go(begin + end) }, text);
    refill(this.steps, one(0, "begin", "The card as the loop begins", "begin"), ...layers.flatMap((found, i) => {
      const name = found.name || `layer ${i + 1}`;
      const { length } = found.heads;
      const attention = `After the attention of ${name}: ${length} ${length === 1 ? "head" : "heads"}`;
      return [make("span", {}, make("span", { class: "layer" }, String(i + 1)),
        length ? one(2 * i + 1, layers.length > 4 ? "attend" : "attention", attention, "attend") : null,
        one(2 * i + 2, "ReLU", `After ${name}`, "forward"))];
    }));
  }
}
