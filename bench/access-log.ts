/**
 * Writes an access log such as a busy gateway does, to measure what reads logs:
 *
 *   node bench/access-log.ts 1000000 > access.log
 *   node bench/access-log.ts 1000000 nginx > access.log
 *
 * The same lines for the same arguments. 30,000 clients, some of whom send much more than others; a tenth of them with
 * addresses only; about a thousand requests a second; lines in the order in which replies end.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';

const CLIENTS = 30_000;
const BEGIN = Date.UTC(2026, 10, 20, 8);
const LINES_PER_WRITE = 2000;

interface Kind {
  readonly method: string;
  /** ID stands for an id. */
  readonly path: string;
  readonly policies: readonly string[];
  readonly identifier: 'ip' | 'api-key' | null;
  readonly weight: number;
}

const KINDS: readonly Kind[] = [
  {
    method: 'GET',
    path: '/api/v1/client/ID/environment',
    policies: ['client'],
    identifier: 'ip',
    weight: 40,
  },
  { method: 'POST', path: '/api/v1/client/ID/responses', policies: ['client'], identifier: 'ip', weight: 15 },
  {
    method: 'GET',
    path: '/api/v1/management/surveys',
    policies: ['management'],
    identifier: 'api-key',
    weight: 12,
  },
  {
    method: 'GET',
    path: '/api/v1/management/surveys/ID',
    policies: ['management'],
    identifier: 'api-key',
    weight: 12,
  },
  {
    method: 'POST',
    path: '/api/v1/management/storage',
    policies: ['management', 'management-storage'],
    identifier: 'api-key',
    weight: 3,
  },
  { method: 'GET', path: '/s/ID', policies: [], identifier: null, weight: 15 },
  { method: 'GET', path: '/health', policies: [], identifier: null, weight: 3 },
];
const WEIGHT = KINDS.reduce((sum, { weight }) => sum + weight, 0);

/** Mulberry32: small, and the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 21).concat('A');
}

function pick(random: number): Kind {
  let at = random * WEIGHT;
  for (const kind of KINDS) {
    at -= kind.weight;
    if (at < 0) return kind;
  }
  return KINDS[0] as Kind;
}

/** @returns one line after the other */
function lineMaker(format: 'floodgate' | 'nginx'): () => string {
  const random = randomFrom(1);
  const addresses = Array.from({ length: CLIENTS }, (_, i) => digest(`address ${i}`));
  const keys = Array.from({ length: CLIENTS }, (_, i) => digest(`key ${i}`));
  const ids = Array.from({ length: 500 }, (_, i) => `cm${digest(`id ${i}`).slice(0, 20).toLowerCase()}`);
  let now = BEGIN;
  return () => {
    now += -Math.log(1 - random());
    const kind = pick(random());
    const client = Math.floor(CLIENTS * random() ** 4);
    const path = kind.path.replace('ID', ids[Math.floor(random() * ids.length)] ?? '');
    const durationMs = Math.round(20 * -Math.log(1 - random()) * 10) / 10;
    const status = random() < 0.96 ? 200 : random() < 0.5 ? 404 : 500;
    const bytes = Math.floor(300 + random() * 4000);
    const at = new Date(now - durationMs);
    if (format === 'nginx') {
      const text = new Date(now).toUTCString();
      const time = `${text.slice(5, 7)}/${text.slice(8, 11)}/${text.slice(12, 16)}:${text.slice(17, 25)} +0000`;
      const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`;
      return `${address} - - [${time}] "${kind.method} ${path} HTTP/1.1" ${status} ${bytes} "-" "Mozilla/5.0 (X11; Linux x86_64)"\n`;
    }
    const { identifier, policies } = kind;
    const identity = identifier === 'ip' ? addresses[client] : keys[client];
    return `${JSON.stringify({
      time: at.toISOString(),
      method: kind.method,
      path,
      status,
      decision: identifier === null ? 'uncovered' : 'allow',
      id: null,
      policies,
      policy: policies[0] ?? null,
      identities: identifier === null ? {} : { [identifier]: identity },
      address: addresses[client],
      unproven: [],
      proves: false,
      requestBytes: kind.method === 'POST' ? 512 : 0,
      bytes,
      upstreamMs: durationMs,
      storeMs: identifier === null ? null : 0.4,
      durationMs,
      cut: false,
    })}\n`;
  };
}

const lines = Number(process.argv[2] ?? '');
const format = process.argv[3] ?? 'floodgate';
if (!Number.isInteger(lines) || lines < 1 || (format !== 'floodgate' && format !== 'nginx')) {
  process.stderr.write('usage: node bench/access-log.ts LINES [floodgate|nginx] > access.log\n');
  process.exit(2);
}
const next = lineMaker(format);
for (let written = 0; written < lines; ) {
  const count = Math.min(LINES_PER_WRITE, lines - written);
  let text = '';
  for (let i = 0; i < count; i++) text += next();
  written += count;
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
