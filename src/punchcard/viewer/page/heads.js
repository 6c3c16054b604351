/** The heads of the layer that a moment belongs to. */
import { make, split } from "./elements.js";

/** The head that is shown; null if the layer has none. */
export function headShown({ about, moment, head }) {
  const { length } = about.layers[split(moment, about.layers.length).layer].heads;
  return length ? Math.min(head, length - 1) : null;
}

/** A button for each head. */
export function headButtons({ about, moment }, press, chosen) {
  const { layer } = split(moment, about.layers.length);
  const buttons = about.layers[layer].heads.map((_, head) => make("button", { type: "button",
    "aria-pressed": head === chosen, "data-place": `head ${head}`, click: () => press(head) }, `head ${head + 1}`));
  return make("div", { class: "heads", role: "group", "aria-label": `Heads of layer ${layer + 1}` }, buttons);
}
