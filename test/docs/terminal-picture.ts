/**
 * Draws a terminal session as an SVG whose lines appear one after the other. It ends with all of them, and shows them at
 * once to readers who prefer no motion. Its text can be read back, so that a test can compare it with a session of today.
 */

const COLUMNS = 80;
const CHARACTER = 8.4;
const LINE = 19;
const MARGIN = 16;
/** Time until the next line appears. */
const SECONDS = { heading: 0.5, command: 1.3, output: 0.1 };

interface Entry {
  /** A heading, or a command with the lines that it printed. */
  readonly heading?: string;
  readonly command?: string;
  readonly output?: string;
}

export type Session = readonly Entry[];

export function textOf(session: Session): string {
  return session
    .flatMap(({ heading, command, output }) => [
      ...(heading === undefined ? [] : ['', `# ${heading}`]),
      ...(command === undefined ? [] : [`$ ${command}`]),
      ...(output === undefined || output === '' ? [] : [output]),
    ])
    .join('\n');
}

export function drawSession(session: Session, title: string): string {
  const lines = textOf(session)
    .split('\n')
    .flatMap((line) => wrapped(line));
  let seconds = 0.4;
  const drawn = lines.map(({ text, kind, isMore }, i) => {
    const begin = seconds;
    seconds += SECONDS[kind];
    const y = MARGIN + LINE * (i + 0.75);
    // The length keeps columns aligned in any font.
    const length = (text.length * CHARACTER).toFixed(1);
    return text === ''
      ? ''
      : `<text class="${kind}${isMore ? ' more' : ''}" x="${MARGIN}" y="${y}" textLength="${length}" style="animation-delay:${begin.toFixed(2)}s">${escaped(text)}</text>\n`;
  });
  const width = Math.ceil(COLUMNS * CHARACTER + 2 * MARGIN);
  const height = lines.length * LINE + 2 * MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">${escaped(title)}</title>
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #d6dde6; animation: show 0.01s both; }
.heading { fill: #8b98a9; }
.command { fill: #7ee2b8; }
@keyframes show { from { opacity: 0; } to { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { text { animation: none; } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#10161f"/>
${drawn.join('')}</svg>
`;
}

/** Returns the text of a picture, with the lines that were wrapped joined again. */
export function readSession(svg: string): string {
  return [...svg.matchAll(/<text class="(\w+)( more)?"[^>]*>([^<]*)<\/text>/g)]
    .map(([, , more, text = '']) => (more === undefined ? `\n${unescaped(text)}` : unescaped(text)))
    .join('')
    .slice(1);
}

interface Drawn {
  readonly text: string;
  /** Also a class of the style. */
  readonly kind: keyof typeof SECONDS;
  /** Whether it continues the line before. */
  readonly isMore: boolean;
}

function wrapped(line: string): Drawn[] {
  const kind = line.startsWith('# ') ? 'heading' : line.startsWith('$ ') ? 'command' : 'output';
  const pieces = line.match(new RegExp(`.{1,${COLUMNS}}(?: |$)|.{1,${COLUMNS}}`, 'g')) ?? [''];
  return pieces.map((text, i) => ({ text, kind, isMore: i > 0 }));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function unescaped(text: string): string {
  return text.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}
