/**
 * Reads pages of exchanges: what a client sends, what the application gets and answers, what the client gets.
 *
 *     ### A title                                 A list in front of the blocks: the case is run with each value.
 *     - $name: `one`, `two`
 *
 *     ```http client                              ```http to the application
 *     GET /$name HTTP/1.1                         GET /$name HTTP/1.1
 *     Host: a                                     …
 *     ```                                         ```
 *     ```http from the application                ```http to the client
 *     HTTP/1.1 204 No Content                     HTTP/1.1 204 No Content
 *     X: 1                                        X: 1
 *     ```                                         …
 *                                                 ! Content-Length:
 *                                                 ```
 *
 * - Lines end with CR LF, but for the last line of a body. A message that is a head alone ends with an empty line, which is
 *   not written. `\r`, `\n`, `\0`, `\t` and `\xNN` stand for single bytes, and `⟦A*200⟧` for A 200 times.
 * - In what is expected, `…` stands for anything, alone on a line for any number of lines. `! text` says that no line begins
 *   so, in any case. A block that says `nothing` expects no byte. The fields Date and
 *   `Keep-Alive: timeout=65`, which the gateway adds, are left out.
 * - Without its block, the application answers 200 with `ok`. `closes` behind a title of a block closes the connection behind
 *   the bytes. A further block of the client begins a new connection, or goes on with `, same connection`.
 * - Blocks `yaml` (the policy file) and `env` hold for the rest of a section (`##`). `$gateway` and `$application` are ports.
 */
export interface Step {
  /** Line in the page, from 1. */
  readonly line: number;
  readonly sent: string;
  readonly isSameConnection: boolean;
  /** What the application has to get; null if that does not matter. */
  seen: string | null;
  answer: string;
  closes: boolean;
  /** What the client has to get; null if that does not matter. */
  received: string | null;
}

export interface Case {
  readonly title: string;
  readonly env: Readonly<Record<string, string>>;
  /** Text of the policy file; null if there are no policies. */
  readonly policies: string | null;
  /** The values of each name. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly steps: readonly Step[];
}

const OK = 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok';
const PART =
  /^## .+$|^### (?<title>.+)$|^- \$(?<name>\w+): (?<values>.+)$|^```(?<kind>[^\n]+)\n(?<text>[\s\S]*?)\n?^```$/gm;

/** @throws Error if a block has no place */
export function readExchanges(page: string): Case[] {
  const cases: (Case & { steps: Step[]; values: Map<string, string[]> })[] = [];
  let env: Record<string, string> = {};
  let policies: string | null = null;
  for (const { 0: all, index, groups = {} } of page.matchAll(PART)) {
    const { title, name, values = '', kind, text = '' } = groups;
    const line = page.slice(0, index).split('\n').length;
    const one = cases.at(-1);
    const step = one?.steps.at(-1);
    if (title !== undefined) cases.push({ title, env, policies, values: new Map(), steps: [] });
    else if (name !== undefined)
      one?.values.set(
        name,
        [...values.matchAll(/`([^`]*)`/g)].map(([, value = '']) => value),
      );
    else if (kind === undefined) [env, policies] = [{}, null];
    else if (kind === 'yaml') policies = text;
    else if (kind === 'env') env = Object.fromEntries(text.split('\n').map((one) => one.split(/=(.*)/)));
    else if (kind.startsWith('http client')) {
      const isSameConnection = kind.endsWith('same connection');
      one?.steps.push({
        line,
        sent: text,
        isSameConnection,
        seen: null,
        answer: OK,
        closes: false,
        received: null,
      });
    } else if (step === undefined) throw new Error(`line ${line}: nobody has sent anything: ${all}`);
    else if (kind === 'http to the application') step.seen = text;
    else if (kind === 'http to the client') step.received = text;
    else if (kind.startsWith('http from the application')) {
      step.answer = text;
      step.closes = kind.endsWith('closes');
    } else throw new Error(`line ${line}: no such block: ${kind}`);
  }
  return cases;
}

const HEAD = /(?:^|\n\n)(?:[^\n]* HTTP\/\d\.\d|HTTP\/\d\.\d \d{3}[^\n]*)(?:\n[^\n]+)*$/;

/** Writes escaped bytes and repeated parts in full. */
export function unescaped(text: string): string {
  return text
    .replace(/\\(?:x([0-9a-f]{2})|([rnt0]))/g, (_, hex: string | undefined, letter = '') =>
      hex === undefined
        ? ({ r: '\r', n: '\n', t: '\t', 0: '\0' }[letter as string] ?? '')
        : String.fromCharCode(Number.parseInt(hex, 16)),
    )
    .replace(/⟦([^⟧]+)\*(\d+)⟧/g, (_, part: string, times: string) => part.repeat(Number(times)));
}

/** Returns the bytes of a block, in latin1. */
export function bytesOf(text: string): string {
  const isHead = HEAD.test(text) && !text.endsWith('…');
  return unescaped((isHead ? `${text}\n\n` : text).replaceAll('\n', '\r\n'));
}

/** What is expected of a message. */
export class Expectation {
  /** Texts, with the wildcard in front of each but the first. */
  readonly #parts: readonly string[];
  readonly #absent: readonly RegExp[];

  constructor(text: string) {
    const lines = text === 'nothing' ? [] : text.split('\n');
    const isAbsent = (line: string): boolean => line.startsWith('! ');
    this.#absent = lines.filter(isAbsent).map((line) => new RegExp(`^${RegExp.escape(line.slice(2))}`, 'im'));
    const wanted = bytesOf(lines.filter((line) => !isAbsent(line)).join('\n'));
    this.#parts = wanted.split(/((?<=^|\r\n)…\r\n|…)/);
  }

  fits(received: string): boolean {
    const text = received.replace(/^(?:Date: [^\r]+|Keep-Alive: timeout=65)\r\n/gim, '');
    return this.#matches(text) && !this.#absent.some((absent) => absent.test(text));
  }

  #matches(text: string): boolean {
    const [first = '', ...rest] = this.#parts;
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (let i = 0; i < rest.length; i += 2) {
      const [wildcard = '', part = ''] = rest.slice(i);
      const isPlace = (place: number): boolean =>
        wildcard === '…' || place === at || text.endsWith('\r\n', place);
      let place = i + 2 === rest.length ? text.length - part.length : text.indexOf(part, at);
      while (place >= at && !isPlace(place)) place = text.indexOf(part, place + 1);
      if (place < at || !text.startsWith(part, place)) return false;
      at = place + part.length;
    }
    return at === text.length;
  }
}

/** Returns each combination of the values. */
export function combinations(values: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, string>[] {
  let all: ReadonlyMap<string, string>[] = [new Map()];
  for (const [name, list] of values)
    all = all.flatMap((one) => list.map((value) => new Map([...one, [name, value]])));
  return all;
}
