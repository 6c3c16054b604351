/** Reading values off a card by the rules of `punchcard.machines.display_values`, and names of rows and columns. */

const UNREADABLE = "–";

/** The number that ±1 bits make, the lowest first; null where an entry is not one. A BigInt: words may have 64 bits. */
export function bitsOf(entries) {
  let number = 0n;
  for (let i = entries.length - 1; i >= 0; i--) {
    if (!(Math.abs(Math.abs(entries[i]) - 1) < 0.25)) return null;
    number = 2n * number + (entries[i] > 0 ? 1n : 0n);
  }
  return number;
}

function integer(entries, { kind, offset = 0, wraps = false, scale = 1, labels = [] }) {
  const held = bitsOf(entries);
  let number = held;
  if (number === null) return UNREADABLE;
  number += BigInt(offset);
  if (kind === "signed") return String(BigInt.asIntN(entries.length, number));
  if (number < 0n && wraps && held > 0n) number = BigInt.asUintN(entries.length, number);
  if (number < 0n) return UNREADABLE;
  return labels[Number(number)] || String(number * BigInt(scale));
}

function label(entries, labels) {
  const set = [...entries.keys()].filter((i) => entries[i] > 0.5);
  return set.length === 1 ? labels[set[0]] ?? String(set[0]) : UNREADABLE;
}

/** A value as people read it. `at(column)` gives all entries of a column. */
export function decode(shown, at) {
  let { column, start } = shown;
  const cut = (entries, first, count) => Array.from(entries.subarray(first, first + count));
  const { pending } = shown;
  if (pending) {
    const wanted = bitsOf(cut(at(pending.column), ...pending.address));
    if (wanted !== null && wanted === bitsOf(cut(at(column), ...pending.own))) {
      column = pending.column;
      [start] = pending.rows;
    }
  }
  const columns = [];
  for (let c = column; c < column + shown.columns; c++) {
    const entries = cut(at(c), start, shown.rows);
    columns.push(shown.plus === null ? entries : entries.map((entry, i) => entry + at(c)[shown.plus + i]));
  }
  if (shown.kind === "numbers") {
    const row = (i) => columns.map((entries) => String(Number(entries[i].toPrecision(6)))).join(" ");
    return [...columns[0].keys()].map(row).join(" ; ");
  }
  const text = (entries) => (shown.kind === "one-hot" ? label(entries, shown.labels) : integer(entries, shown));
  return columns.map(text).join(", ");
}

/** The bands of a card: its blocks, or the parts of blocks that have some. */
export function bandsOf(layout) {
  return layout.blocks.flatMap((block) => (block.parts.length
    ? block.parts.map(([part, start, rows]) => ({ name: `${block.name}.${part}`, start, rows, block }))
    : [{ name: block.name, start: block.start, rows: block.rows, block }]));
}

/** A program counter as people write it on this machine: an address of RISC-V is hexadecimal. */
export function counterText({ counter_base: base }, number) {
  return base === 16 ? `0x${Number(number).toString(16).padStart(4, "0")}` : String(number);
}

/** A row by its band and its number there. */
export function rowName(bands, row) {
  const band = bands.find((one) => row >= one.start && row < one.start + one.rows);
  if (!band) return `row ${row}`;
  return band.rows === 1 ? band.name : `${band.name}[${row - band.start}]`;
}

/** A column by its region and its number there. */
export function placeName(layout, column) {
  const region = layout.regions.find((one) => column >= one.start && column < one.start + one.columns);
  if (!region) return `column ${column}`;
  return region.columns === 1 ? region.name : `${region.name}[${column - region.start}]`;
}

/** A column by its own name, if it has one, or by its place. */
export function columnName(about, column) {
  return about.column_names[column] ?? placeName(about.layout, column);
}
