/** Writing numbers on a card: the rows of blocks and their parts by name. */

/** [first row, rows] by the name of a block, or of a part as in `command.a`. */
export function blocksOf(layout) {
  return new Map(layout.blocks.flatMap((block) => [[block.name, [block.start, block.rows]],
    ...block.parts.map(([part, start, rows]) => [`${block.name}.${part}`, [start, rows]])]));
}

/** Write a number as ±1 bits, the lowest first. */
export function putNumber(card, width, [from, rows], column, number) {
  for (let i = 0; i < rows; i++) card[column * width + from + i] = Math.floor(number / 2 ** i) % 2 ? 1 : -1;
}
