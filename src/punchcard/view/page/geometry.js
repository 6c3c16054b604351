/** Where the columns and the bands of rows stand on the picture of a card. Everything is in CSS pixels. */

const LEAST_COLUMN = 9;
const MOST_COLUMN = 46;
const LEAST_ROW = 6;
const MOST_ROW = 13;

/** The columns from left to right, with a gap between regions and a mark where some are folded away. */
export function placeColumns(layout, shown, room, text) {
  const regions = layout.regions.map((region) => ({
    region, columns: shown.filter((column) => column >= region.start && column < region.start + region.columns),
  })).filter(({ columns, region }) => columns.length || region.columns);
  const gap = 0.7 * text;
  const fold = 1.1 * text;
  const folds = regions.reduce((count, { region, columns }) => count + holes(region, columns).length, 0);
  const count = shown.length || 1;
  const free = room - gap * regions.length - fold * folds;
  const width = Math.max(LEAST_COLUMN, Math.min(MOST_COLUMN, Math.floor(free / count)));
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
  return { places, heads, folded, width: x - gap / 2, column: width, at: new Map(places.map((place) => [place.column, place])) };
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

/** Blocks, or their parts, as bands. A band that holds nothing is thin when `folding`. */
export function placeBands(bands, empty, room, text, folding, values) {
  const shown = bands.filter((band) => !(folding && empty(band)));
  const rows = shown.reduce((count, band) => count + band.rows, 0) || 1;
  const line = 1.05 * text;
  const extra = shown.reduce((sum, band) => sum + (values(band) ? line : 0) + 3, 0);
  const height = Math.max(LEAST_ROW, Math.min(MOST_ROW, Math.floor((room - extra) / rows)));
  let y = 0;
  const places = shown.map((band) => {
    const top = values(band) ? line : 0;
    const row = Math.max(height, band.rows * height + top < line ? (line - top) / band.rows : 0);
    const place = { band, y, top, row, height: top + row * band.rows };
    y += place.height + 3;
    return place;
  });
  return { places, height: y, hidden: bands.length - shown.length };
}

/** The band and the row under a point, or null. */
export function rowAt(bands, y) {
  const place = bands.places.find((one) => y >= one.y && y < one.y + one.height);
  if (!place) return null;
  const inside = Math.floor((y - place.y - place.top) / place.row);
  return place.band.start + Math.max(0, Math.min(place.band.rows - 1, inside));
}

/** The column under a point, or null. */
export function columnAt(columns, x) {
  return columns.places.find((one) => x >= one.x && x < one.x + one.width)?.column ?? null;
}
