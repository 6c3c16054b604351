/**
 * The page that steps through a run: `mount(element, source)`.
 *
 * A run is a line of moments. With L layers, moment 2 L loop + 2 layer + stage is the card before that layer (stage 0) or
 * after its attention (stage 1). A source answers, always with a promise, what `punchcard.viewer.protocol` describes:
 *
 *     about()   state(moment)   attention(loop, layer, head)   explain(moment, column)
 *     weights(layer, {head} or {unit})   find(what, moment, {forward, ...})
 *
 * There are three sources. The server's page has no data and asks POST /api/NAME with the arguments as a JSON object.
 * A file has its data in <script type="application/json" id="punchcard-data">, made by `page.document(title, data)`:
 *
 *     {kind: "recorded", about, states: [state, ...], attention: {"loop/layer/head": reply}, formulas: [reply, ...],
 *      weights: {"layer/head/": reply, "layer//unit": reply}}
 *         A state has `entries`, or instead `changes`: [[row, column, value], ...] against the state before it in the list
 *         (then `columns` may be missing too; columns that the state before does not have were 0). States that are not there cannot be shown.
 *     {kind: "computed", about, model, card, loops: {number: fact}, formulas: [reply, ...], story: [[sentence, sentence], ...]}
 *         The page computes every card from the equation. `model` and `card` come from `viewer/html.py`. `loops` has, by
 *         number, what a loop's card does not say by itself: parts of a state (output, read, message), and `changes`:
 *         [[row, column, value], ...] that a host made to the card between the loops, as input for a port.
 *     {kind: "playground", machines: {family: packed}, gallery, library, brainfuck}
 *         A page to write programs on: see `viewer/playground.py`.
 */
import { make } from "./elements.js";
import { sourceOf } from "./sources.js";
import { View } from "./view.js";
import { Playground } from "./playground.js";

/** Show the run of a source in an element. The promise is kept once the first card is painted. */
export async function mount(element, source) {
  element.classList.add("punchcard");
  element.replaceChildren(make("p", { class: "hint", role: "status" }, "Opening the run …"));
  followTheme(element);
  try {
    const view = new View(element, source, await source.about());
    await view.on_go(element.id ? asked() ?? 0 : 0);
    if (!view.state) { // a moment that cannot be shown: its reason, above the first card
      const why = view.note.textContent;
      await view.on_go(0);
      view.tell(why);
    }
    if (element.id) addEventListener("hashchange", () => { if (asked() !== null) view.on_go(asked()); });
    view.explore();
    return view;
  } catch (error) {
    element.replaceChildren(make("p", { class: "note", role: "alert" }, error.message));
    return null;
  }
}

/** The moment in the address, as in `#moment=5`; null if there is none. */
function asked() {
  const given = window.location.hash.match(/^#moment=(\d{1,15})$/);
  return given ? Number(given[1]) : null;
}

/** Inside a page of the docs: dark or light as that page is now. */
function followTheme(element) {
  try {
    const { body } = window.parent.document;
    if (window === window.parent || !body.dataset.mdColorScheme) return;
    const follow = () => { element.dataset.theme = body.dataset.mdColorScheme === "slate" ? "dark" : "light"; };
    follow();
    new MutationObserver(follow).observe(body, { attributeFilter: ["data-md-color-scheme"] });
  } catch { /* another site's page, which nobody may look at */ }
}

const root = document.getElementById("punchcard-view");
if (root) {
  const inside = document.getElementById("punchcard-data");
  const data = inside && JSON.parse(inside.textContent);
  // For tests, and for people who look at a run from the browser's console.
  if (data?.kind === "playground") root.playground = new Playground(root, data, mount);
  else {
    root.view = mount(root, sourceOf(data));
    root.view.then((view) => {
      if (window === window.parent) view?.element.focus(); // inside another page it would scroll that page
    });
  }
}
