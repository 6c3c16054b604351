/** Where the columns and the bands of rows stand on the picture of a card. Everything is in CSS pixels. */

const LEAST_COLUMN = 9;
const MOST_COLUMN = 46;
const LEAST_ROW = 4.5;
const MOST_ROW = 13;

/** The columns from left to right, with a gap between regions and a mark where some are folded away. */
export function placeColumns(layout, shown, room, text, least = LEAST_COLUMN) {
  const regions = layout.regions.map((region) => ({
    region, columns: shown.filter((column) => column >= region.start && column < region.start + region.columns),
  })).filter(({ columns, region }) => columns.length || region.columns);
  const gap = 0.7 * text;
  const fold = 1.1 * text;
  const folds = regions.reduce((count, { region, columns }) => count + holes(region, columns).length, 0);
  const count = shown.length || 1;
  const free = room - gap * regions.length - fold * folds;
  const width = Math.max(least, Math.min(MOST_COLUMN, Math.floor(free / count)));
  const places = [];
  const heads = [];
  const folded = [];
  let x = gap / 2;
  for (const { region, columns } of regions) {
    const first = x;
    const missing = new Map(holes(region, columns).map((hole) => [hole.before, hole]));
    for (const column of [...columns, null]) {
      const hole = missing.get(column);
      if (hole) {
        folded.push({ ...hole, region, x, width: fold });
        x += fold;
      }
      if (column !== null) {
        places.push({ column, x, width, region });
        x += width;
      }
    }
    heads.push({ region, x: first, width: x - first });
    x += gap;
  }
  const at = new Map(places.map((place) => [place.column, place]));
  return { places, heads, folded, width: x - gap / 2, column: width, at };
}

/** Runs of columns of a region that are not shown, each with the shown column that follows it (null at the end). */
function holes(region, columns) {
  const found = [];
  let next = region.start;
  for (const column of [...columns, null]) {
    const stop = column === null ? region.start + region.columns : column;
    if (stop > next) found.push({ before: column, first: next, count: stop - next });
    next = stop + 1;
  }
  return found;
}

/** A run of so many rows that hold nothing is folded to a gap. */
const EMPTY_ROWS = 4;
const GAP = 5;

/** The rows of a band that are drawn, in runs; between two runs, some that hold nothing are folded. */
function runsOf(band, empty, folding) {
  const rows = [...Array(band.rows).keys()].map((r) => band.start + r);
  if (!folding || band.rows <= EMPTY_ROWS) return [rows];
  const runs = [[]];
  for (let i = 0; i < rows.length;) {
    let end = i;
    while (end < rows.length && empty(rows[end])) end += 1;
    if (end - i >= EMPTY_ROWS) {
      runs.push([]);
      i = end;
    } else {
      runs.at(-1).push(...rows.slice(i, Math.max(end, i + 1)));
      i = Math.max(end, i + 1);
    }
  }
  return runs;
}

/** Blocks, or their parts, as bands. With `folding`, bands and runs of rows that hold nothing are left out. */
export function placeBands(bands, { empty, chosen, folding, values, closed }, room, text) {
  const kept = bands.map((band) => ({ band, runs: closed.has(band.name) ? [[]] : runsOf(band, empty, folding) }))
    .filter(({ band: { name }, runs }) => !folding || name === chosen || closed.has(name)
      || runs.flat().some((row) => !empty(row)));
  for (const one of kept) one.top = values(one.band) ? 1.05 * text : 0;
  const rows = kept.reduce((count, { runs }) => count + runs.flat().length, 0) || 1;
  const line = 1.05 * text;
  const extra = kept.reduce((sum, { top, runs }) => sum + top + 3 + GAP * (runs.length - 1), 0);
  const usual = Math.max(LEAST_ROW, Math.min(MOST_ROW, Math.floor(2 * (room - extra) / rows) / 2));
  let y = 0;
  const places = kept.map(({ band, runs, top }) => {
    const count = Math.max(1, runs.flat().length);
    const size = Math.max(usual, (line - top) / count);
    const place = { band, y, top, size, lines: [], gaps: [] };
    y += top;
    runs.forEach((run, i) => {
      if (i) {
        place.gaps.push(y);
        y += GAP;
      }
      for (const row of run) {
        place.lines.push({ row, y, size });
        y += size;
      }
    });
    if (!place.lines.length) y += size;
    place.height = y - place.y;
    y += 3;
    return place;
  });
  const lines = new Map(places.flatMap((place) => place.lines).map((one) => [one.row, one]));
  return { places, height: y, hidden: bands.length - kept.length, lines };
}

/** The row under a point, or null. */
export function rowAt(bands, y) {
  const place = bands.places.find((one) => y >= one.y && y < one.y + one.height);
  if (!place) return null;
  const below = place.lines.filter((line) => line.y <= y);
  return (below.at(-1) ?? place.lines[0])?.row ?? null;
}

/** The column under a point, or null. */
export function columnAt(columns, x) {
  return columns.places.find((one) => x >= one.x && x < one.x + one.width)?.column ?? null;
}
