/** The texts of attacks: requests in a short form, with repetitions and parts that change with each request. */

/** Returns a text with each call. Bytes that do not change are made once, so all connections share them. */
export type Bytes = () => Buffer;

const NOTHING = Buffer.alloc(0);
const REPEATED = /<(\d+) \* ([^<>]*)>/g;
const CHANGING = /<(new|turn|address)(?: (\d+))?>/g;

/** Returns the texts in turn. A single one is a list too. */
export function inTurn(texts: string | readonly string[]): Bytes {
  const all = [texts].flat().map(bytesOf);
  let i = 0;
  return () => all[i++ % all.length]?.() ?? NOTHING;
}

/** Returns the bytes of a request in the short form. */
export function requestText(short: string): string {
  const [head = '', ...body] = repeated(short).replace(/\n$/, '').split('\n\n');
  const [line, ...fields] = head.trimEnd().split('\n');
  return [`${line} HTTP/1.1`, 'Host: bench.example', ...fields, '', body.join('\n\n')].join('\r\n');
}

function bytesOf(text: string): Bytes {
  const whole = repeated(text);
  const changing = [...whole.matchAll(CHANGING)].map(([, kind = '', of = '1']) => PARTS[kind]?.(Number(of)));
  if (changing.length === 0) {
    const bytes = Buffer.from(whole, 'latin1');
    return () => bytes;
  }
  return () => {
    let i = 0;
    return Buffer.from(
      whole.replace(CHANGING, () => changing[i++]?.() ?? ''),
      'latin1',
    );
  };
}

/** Repeats from the inside out. */
function repeated(text: string): string {
  const next = text.replace(REPEATED, (_, times: string, part: string) =>
    part.includes('#')
      ? Array.from({ length: Number(times) }, (_, i) => part.replaceAll('#', String(i))).join('')
      : part.repeat(Number(times)),
  );
  return next === text ? text : repeated(next);
}

let invented = 0;

const PARTS: Readonly<Record<string, (n: number) => () => string>> = {
  new(uses) {
    let used = 0;
    let current = '';
    return () => {
      if (used++ % uses === 0) current = (++invented).toString(36).padStart(8, '0') + scrambled(invented);
      return current;
    };
  },
  turn(count) {
    let i = 0;
    return () => (i++ % count).toString(16);
  },
  address() {
    let sent = 0;
    return () => {
      // Six requests come from three addresses.
      const address = Math.floor(sent / 6) * 3 + (([0, 1, 1, 2, 2, 2] as const)[sent++ % 6] ?? 0);
      return `10.0.${(address >> 8) & 255}.${address & 255}`;
    };
  },
};

function scrambled(n: number): string {
  return ((n * 2_654_435_761) >>> 0).toString(36).padStart(8, '0');
}
