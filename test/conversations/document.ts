/**
 * Reads conversations: pages with pairs of code blocks, a request and its reply.
 *
 *     ```http                                     ```http
 *     POST /api/v1/webhooks                       200
 *     x-api-key: $both                            content-type: application/json…
 *
 *     { "url": "https://hooks.example.com/in" }   { "data": { "id": "$webhook", "secret": "whsec_…", … } }
 *     ```                                         ```
 *
 * In a reply, `…` stands for anything: for a value, for a part of a text, and as a member or an element for all further
 * ones. `$name` stands for what it stood for before. The first time it is in a reply, it takes the value that is there. A
 * reply of a status alone says nothing about the rest. A rule (`---`) begins a new API, and `**1000 ms later**` moves its
 * clock. A block `env` before the first request of an API has settings for it.
 */
export interface Exchange {
  /** The heading that it stands under. */
  readonly title: string;
  /** Line of the request in the page, from 1. */
  readonly line: number;
  /** Time that passes before it. */
  readonly laterMs: number;
  readonly request: Message;
  readonly reply: Message;
}

export interface Conversation {
  readonly env: Readonly<Record<string, string>>;
  readonly exchanges: readonly Exchange[];
}

interface Message {
  /** Method and target of a request, or the status of a reply. */
  readonly first: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Empty if there is none. */
  readonly body: string;
}

const BLOCK = /^## (.+)$|^(---)$|\*\*([\d,]+) ms later\*\*|^```(http|env)\n([\s\S]*?)^```$/gm;

/** @throws Error if a request has no reply */
export function readConversations(page: string): Conversation[] {
  const conversations: Conversation[] = [];
  let exchanges: Exchange[] = [];
  let env: Record<string, string> = {};
  let title = '';
  let laterMs = 0;
  let asked: { readonly request: Message; readonly line: number } | null = null;
  const end = (): void => {
    if (exchanges.length > 0) conversations.push({ env, exchanges });
    [exchanges, env] = [[], {}];
  };
  for (const { 0: all, 1: heading, 2: rule, 3: ms, 4: kind, 5: text = '', index } of page.matchAll(BLOCK)) {
    const line = page.slice(0, index).split('\n').length;
    if (heading !== undefined) title = heading;
    else if (rule !== undefined) end();
    else if (ms !== undefined) laterMs += Number(ms.replaceAll(',', ''));
    else if (kind === 'env')
      env = Object.fromEntries(
        text
          .trim()
          .split('\n')
          .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]),
      );
    else if (asked === null) asked = { request: messageOf(text), line };
    else {
      exchanges.push({ title, line: asked.line, laterMs, request: asked.request, reply: messageOf(text) });
      [asked, laterMs] = [null, 0];
      if (!/^\d{3}\b/.test(text)) throw new Error(`line ${line}: write a status first, not: ${all}`);
    }
  }
  if (asked !== null) throw new Error(`line ${asked.line}: the request has no reply`);
  end();
  return conversations;
}

function messageOf(text: string): Message {
  const [head = '', ...rest] = text.trim().split('\n\n');
  const [first = '', ...fields] = head.split('\n');
  const headers = fields.map((field) => {
    const at = field.indexOf(':');
    return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()] as const;
  });
  return { first, headers, body: rest.join('\n\n') };
}

/** Names of values. */
export type Names = Map<string, unknown>;

const NAME = /\$(\w+)/g;

/** Puts values in the place of their names. */
export function filled(text: string, names: Names): string {
  return text.replace(NAME, (all, name: string) => (names.has(name) ? String(names.get(name)) : all));
}

/** Parses JSON in which a bare `…` stands for further members or elements. */
export function parsePattern(text: string): unknown {
  const opened: string[] = [];
  const json = text.replace(/"(?:[^"\\]|\\.)*"|[[\]{}]|…/g, (token) => {
    if (token === '[' || token === '{') opened.push(token);
    else if (token === ']' || token === '}') opened.pop();
    if (token !== '…') return token;
    return opened.at(-1) === '{' ? '"…":0' : '"…"';
  });
  return JSON.parse(json);
}

/** Members that the pattern does not have may be there. */
export function opened(pattern: unknown): unknown {
  if (Array.isArray(pattern)) return pattern.map(opened);
  if (typeof pattern !== 'object' || pattern === null) return pattern;
  return { ...Object.fromEntries(Object.entries(pattern).map(([name, one]) => [name, opened(one)])), '…': 0 };
}

/** Compares a value with a pattern, and learns names. @returns the difference in words; null if there is none */
export function difference(pattern: unknown, got: unknown, names: Names, path = 'the body'): string | null {
  if (typeof pattern === 'string') return textDifference(pattern, got, names, path);
  if (Array.isArray(pattern)) {
    const isOpen = pattern.at(-1) === '…';
    const wanted = isOpen ? pattern.slice(0, -1) : pattern;
    if (!Array.isArray(got)) return `${path} is ${shown(got)}, not a list`;
    if (got.length < wanted.length || (!isOpen && got.length > wanted.length))
      return `${path} has ${got.length} elements instead of ${wanted.length}: ${shown(got)}`;
    return first(wanted.map((one, i) => () => difference(one, got[i], names, `${path}[${i}]`)));
  }
  if (typeof pattern === 'object' && pattern !== null) {
    if (typeof got !== 'object' || got === null || Array.isArray(got)) return `${path} is ${shown(got)}`;
    const { '…': more, ...wanted } = pattern as Record<string, unknown>;
    const further = Object.keys(got).filter((key) => !Object.hasOwn(wanted, key));
    if (more === undefined && further.length > 0) return `${path} also has ${further.join(', ')}`;
    const found = got as Record<string, unknown>;
    return first(
      Object.entries(wanted).map(
        ([key, one]) =>
          () =>
            difference(one, found[key], names, `${path}.${key}`),
      ),
    );
  }
  return Object.is(pattern, got) ? null : `${path} is ${shown(got)} instead of ${shown(pattern)}`;
}

function textDifference(pattern: string, got: unknown, names: Names, path: string): string | null {
  const { 1: name } = /^\$(\w+)$/.exec(pattern) ?? [];
  if (name !== undefined && !names.has(name)) {
    if (got === undefined) return `${path} is missing`;
    names.set(name, got);
    return null;
  }
  if (pattern === '…') return got === undefined ? `${path} is missing` : null;
  const wanted = name === undefined ? filled(pattern, names) : names.get(name);
  if (typeof wanted !== 'string' || !wanted.includes('…'))
    return Object.is(wanted, got) ? null : `${path} is ${shown(got)} instead of ${shown(wanted)}`;
  const parts = wanted.split('…').map((part) => RegExp.escape(part));
  const isLike = typeof got === 'string' && new RegExp(`^${parts.join('[\\s\\S]*')}$`).test(got);
  return isLike ? null : `${path} is ${shown(got)}, not like ${shown(wanted)}`;
}

function first(compared: readonly (() => string | null)[]): string | null {
  for (const compare of compared) {
    const found = compare();
    if (found !== null) return found;
  }
  return null;
}

const shown = (value: unknown): string => JSON.stringify(value) ?? 'missing';
