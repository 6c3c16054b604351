/** Making elements, and the few things that several parts of the page need. */

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || (value === false && !name.startsWith("aria-"))) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element: attributes by name, functions as listeners, then its children. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A button with a name for readers and a key for the hint. */
export function button(label, name, key, press) {
  return make("button", { type: "button", "aria-label": name, title: key ? `${name} (${key})` : name, click: press }, label);
}

/** A line of small print. */
export function hint(text) {
  return make("p", { class: "hint" }, text);
}

/** Replace what an element holds; whoever had the focus at a place (`data-place`) has it again. */
export function refill(element, ...children) {
  const wanted = children.flat().filter(Boolean);
  if (wanted.length === element.childNodes.length && wanted.every((child, i) => child === element.childNodes[i])) return;
  const held = element.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
  element.replaceChildren(...wanted);
  if (held !== undefined) [...element.querySelectorAll("[data-place]")].find((one) => one.dataset.place === held)?.focus();
}

/** A number for people: whole ones as they are, others with few digits. */
export function pretty(value, digits = 5) {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value === 0 ? "0" : String(value).replace("-", "−");
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 2);
  return text.replace(/-/g, "−");
}

/** `1 loop`, `2,000 loops`. */
export const plural = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/** At most so many letters of a text. */
export const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);

/** A name that may break before its number. */
export function breakable(name) {
  const at = name.indexOf("[");
  return at < 1 ? [name] : [name.slice(0, at), make("wbr"), name.slice(at)];
}

/** Loop, layer and stage of a moment. */
export function split(moment, layers) {
  const loop = Math.floor(moment / (2 * layers));
  const rest = moment - 2 * layers * loop;
  return { loop, layer: rest >> 1, stage: rest % 2 };
}

/** The colours of the page as the stylesheet has them now, for what is painted. */
export function colours(element) {
  const style = getComputedStyle(element);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  const text = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return { plus: named("plus"), minus: named("minus"), paper: named("paper"), ink: named("ink"), muted: named("muted"),
    line: named("line"), accent: named("accent"), changed: named("changed"), current: named("current"), text };
}
