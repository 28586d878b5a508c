/**
 * Draws the Open Graph image of a survey as SVG: its name on a card, in the colour of the brand. Pure.
 *
 * Both come from links that anybody may write, so the name is cut and escaped, and a colour must be hexadecimal,
 * otherwise the default is used. Every link gets an image.
 */

const WIDTH = 800;
const HEIGHT = 400;
export const FONT_FAMILY = 'DejaVu Sans';

const DEFAULT_COLOR = '#64748b';
/** Maximum length of a name. The rest of a longer one is ignored, because it would not fit in any size. */
const NAME_LENGTH_MAX = 200;
const TEXT_WIDTH = 608;

/** Font sizes, the largest first. The last one is used even if the name must be cut. */
const sizes = [
  { fontSize: 52, linesMax: 2 },
  { fontSize: 42, linesMax: 3 },
  { fontSize: 32, linesMax: 4 },
] as const;

/** @param text `#rgb` or `#rrggbb`, either with alpha, also without the `#` or with it percent-encoded twice */
export function readColor(text: string): string {
  const digits = /^(?:#|%23)?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.exec(text.trim())?.[1];
  return digits === undefined ? DEFAULT_COLOR : `#${digits.toLowerCase()}`;
}

/** Returns one line of printable text that XML allows. */
export function readName(text: string): string {
  const printable = text
    .slice(0, NAME_LENGTH_MAX * 4)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cn}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  return [...printable].slice(0, NAME_LENGTH_MAX).join('');
}

/** @param name as `readName` returns it; may be '' @param color as `readColor` returns it */
export function drawing(name: string, color: string): string {
  const { fontSize, lines } = fitted(name);
  const lineHeight = fontSize * 1.25;
  const top = 172 - ((lines.length - 1) * lineHeight) / 2 + fontSize * 0.35;
  const text = lines
    .map((line, i) => `<text x="96" y="${(top + i * lineHeight).toFixed(1)}">${escapeXml(line)}</text>`)
    .join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}">
<rect width="100%" height="100%" fill="#ffffff"/>
<rect width="100%" height="100%" fill="${color}" fill-opacity="0.18"/>
<rect x="48" y="48" width="704" height="304" rx="20" fill="#ffffff"/>
<path d="M68 48h-0a20 20 0 0 0-20 20v264a20 20 0 0 0 20 20h0z" fill="${color}"/>
<g font-family="${FONT_FAMILY}" font-weight="bold" font-size="${fontSize}" fill="#0f172a">${text}</g>
<rect x="96" y="290" width="96" height="12" rx="6" fill="${color}"/>
<rect x="204" y="290" width="12" height="12" rx="6" fill="${color}" fill-opacity="0.5"/>
<rect x="228" y="290" width="12" height="12" rx="6" fill="${color}" fill-opacity="0.25"/>
</svg>`;
}

function fitted(name: string): { readonly fontSize: number; readonly lines: readonly string[] } {
  for (const { fontSize, linesMax } of sizes) {
    const lines = wrap(name, TEXT_WIDTH / fontSize);
    if (lines.length <= linesMax) return { fontSize, lines };
  }
  const { fontSize, linesMax } = sizes[2];
  const lines = wrap(name, TEXT_WIDTH / fontSize - 1).slice(0, linesMax);
  return { fontSize, lines: lines.map((line, i) => (i === linesMax - 1 ? `${line}…` : line)) };
}

/** Breaks at spaces, and inside words that are longer than a line. @param widthMax in em */
function wrap(text: string, widthMax: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (widthOf(longer) <= widthMax) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (widthOf(line + character) > widthMax) {
        lines.push(line);
        line = '';
      }
      line += character;
    }
  }
  if (line !== '') lines.push(line);
  return lines;
}

/**
 * Returns the width in em, for DejaVu Sans Bold, rounded up for each kind of character so that no line is wider than
 * the card.
 */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    if (/[ .,:;'|!()[\]/ijlftrI-]/.test(character)) width += 0.5;
    else if (/[mwMW@%&]/.test(character)) width += 1.11;
    else if (/[A-Z]/.test(character)) width += 0.86;
    else if (/[\x20-\x7e]/.test(character)) width += 0.72;
    else width += 1.05;
  }
  return width;
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
