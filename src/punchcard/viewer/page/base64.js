/** Numbers that came as base64, the lowest byte first. */

function bytes(text) {
  const binary = atob(text);
  const found = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) found[i] = binary.charCodeAt(i);
  return found;
}

/** float64 numbers. */
export function floats(text) {
  return new Float64Array(bytes(text).buffer);
}

/** Whole numbers of 32 bits. */
export function whole(text) {
  return new Uint32Array(bytes(text).buffer);
}

/** base64 of a server, or the numbers of a page that computes them. */
export function asNumbers(given) {
  return typeof given === "string" ? floats(given) : given;
}

/** What was written as JSON, compressed by zlib and put into base64. */
export async function inflated(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
