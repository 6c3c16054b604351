/**
 * Source text as lines of tokens that know their places, by the rules of `machines/source.py`: every error names one, and
 * shows the line with a caret below it. The languages of the playground are read with it.
 */

const ESCAPES = { n: "\n", t: "\t", r: "\r", 0: "\0", "\\": "\\", "'": "'", '"': '"' };
const MOST_DIGITS = 40;
const LONGEST = 40;

/** A text in quotes, as messages repeat it; a long one is cut. */
export function quoted(text) {
  const cut = text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}...`;
  const mark = cut.includes("'") && !cut.includes('"') ? '"' : "'";
  const inside = cut.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\t/g, "\\t").replace(/\r/g, "\\r");
  return mark + (mark === "'" ? inside.replace(/'/g, "\\'") : inside) + mark;
}

/** An error at a place of a text, with the line and a caret below it. */
export class SourceError extends Error {
  constructor(message, { line, column }, text) {
    super(`line ${line}, column ${column}: ${message}`);
    Object.assign(this, { said: message, line, column, shown: `${text}\n${text.slice(0, Math.max(0, column - 1)).replace(/[^\t]/g, " ")}^` });
  }
}

/** How alike two words are, 0 to 1: twice the letters of their common runs, the longest first, by all letters. */
function likeness(one, other) {
  const common = (from, to, first, last) => {
    let best = [0, 0, 0];
    for (let i = from; i < to; i++) {
      for (let j = first; j < last; j++) {
        let length = 0;
        while (i + length < to && j + length < last && one[i + length] === other[j + length]) length += 1;
        if (length > best[0]) best = [length, i, j];
      }
    }
    const [length, i, j] = best;
    return length && length + common(from, i, first, j) + common(i + length, to, j + length, last);
  };
  const total = one.length + other.length;
  return total ? 2 * common(0, one.length, 0, other.length) / total : 1;
}

/** ` (did you mean 'loop'?)`, or nothing where no known name is near. */
export function didYouMean(name, known) {
  let best = [0.6, ""];
  for (const word of known) {
    const found = likeness(word, name);
    if (found > best[0] || (found === best[0] && word > best[1])) best = [found, word];
  }
  return best[1] ? ` (did you mean ${quoted(best[1])}?)` : "";
}

/** A text, and the way from a place in it to an error. */
export class Text {
  constructor(content) {
    this.content = content.replace(/\r\n?/g, "\n");
    this.rows = this.content.split("\n");
  }

  error(message, place) { return new SourceError(message, place, this.rows[place.line - 1] ?? ""); }

  /** The lines that hold more than blanks and comments; the groups of `pattern` are the kinds of tokens. */
  * lines(pattern, stretch = /[^\n]+/y) {
    let number = 1;
    for (let at = 0; at < this.content.length;) {
      if (this.content[at] === "\n") {
        [at, number] = [at + 1, number + 1];
        continue;
      }
      stretch.lastIndex = at;
      const [found] = stretch.exec(this.content);
      const line = new Line(this, found, number, pattern);
      if (line.ahead.kind !== "end") yield line;
      at += found.length;
      number += found.split("\n").length - 1;
    }
  }
}

/** The tokens of one line, taken from left to right; `ahead` is the next one, an empty one at the end of the line. */
class Line {
  constructor(text, content, number, pattern) {
    Object.assign(this, { text, content, number, second: null });
    const rows = content.trimEnd().split("\n");
    this.end = { kind: "end", text: "", line: number + rows.length - 1, column: rows.at(-1).length + 1 };
    this.tokens = this.scan(pattern);
    this.ahead = this.next();
  }

  * scan(pattern) {
    let line = this.number;
    let start = 0;
    for (let at = 0; at < this.content.length;) {
      pattern.lastIndex = at;
      const found = pattern.exec(this.content);
      const place = { line, column: at - start + 1 };
      if (!found) throw this.text.error(`unexpected character ${quoted(this.content[at])}`, place);
      const [kind, word] = Object.entries(found.groups).find(([, one]) => one !== undefined) ?? [];
      if (kind) yield { kind, text: word, ...place };
      at += found[0].length;
      const rows = found[0].split("\n");
      if (rows.length > 1) [line, start] = [line + rows.length - 1, at - rows.at(-1).length];
    }
  }

  next() { return this.tokens.next().value ?? this.end; }

  error(message, token) { return this.text.error(message, token); }

  at(...marks) { return marks.includes(this.ahead.text); }

  secondIs(mark) { return (this.second ??= this.next()).text === mark; }

  take() {
    const token = this.ahead;
    this.ahead = this.second ?? this.next();
    this.second = null;
    return token;
  }

  takeIf(mark) { return this.at(mark) && Boolean(this.take()); }

  takeMark(mark, rule) { if (!this.takeIf(mark)) throw this.wrong(rule); }

  wrong(rule) {
    const found = this.ahead.kind === "end" ? "the line ends here" : `found ${quoted(this.ahead.text)}`;
    return this.error(`${found}: ${rule}`, this.ahead);
  }

  takeName(what) {
    if (this.ahead.kind !== "name") throw this.wrong(`${what} must be a name`);
    return this.take();
  }

  /** A decimal, hexadecimal or character constant, with an optional sign; the number, and where it begins. */
  takeInteger(what) {
    const first = this.ahead;
    const sign = this.at("-") ? -1 : 1;
    if (this.at("+", "-")) this.take();
    const token = this.ahead;
    if (token.kind === "character") {
      this.take();
      return [sign * this.unescape(token).codePointAt(0), first];
    }
    if (token.kind !== "number") throw this.wrong(`${what} must be a decimal (12), hexadecimal (0x0c) or character ('a') constant`);
    this.take();
    const { text } = token;
    if (text.length > MOST_DIGITS) {
      throw this.error(`${quoted(text)} has ${text.length} digits: the most is ${MOST_DIGITS}`, token);
    }
    if (!/^(\d+|0[xX][0-9a-fA-F]+)$/.test(text)) {
      throw this.error(`${quoted(text)} is not a number: write decimal (12) or hexadecimal (0x0c)`, token);
    }
    return [sign * Number(text), first];
  }

  /** The characters that a token in quotes means. */
  unescape(token) {
    return token.text.slice(1, -1).replace(/\\([\s\S])/g, (whole, letter) => {
      if (letter in ESCAPES) return ESCAPES[letter];
      const known = Object.keys(ESCAPES).sort((a, b) => "ntr0\\'\"".indexOf(a) - "ntr0\\'\"".indexOf(b));
      throw this.error(`unknown escape ${whole} in ${quoted(token.text.slice(1, -1))}: there are `
        + known.map((one) => `\\${one}`).join(", "), token);
    });
  }

  finish(what) {
    if (this.ahead.kind !== "end") throw this.error(`unexpected ${quoted(this.ahead.text)} after ${what}`, this.ahead);
  }
}
