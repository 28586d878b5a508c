/**
 * `npm run bench -- log LINES`: prints the access log of an imagined busy gateway, to measure programs that read logs.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { command } from '#bench/command.ts';
import { drawn } from '#bench/run/statistics.ts';
import { whole } from '#shared/cli/command.ts';
import { seededRandom } from '#test/support/seed.ts';

/** Number of clients. Some send much more than others. */
const CLIENTS = 30_000;
const BEGIN = Date.UTC(2026, 10, 20, 8);
const LINES_PER_WRITE = 2000;

interface Kind {
  readonly weight: number;
  readonly method: string;
  /** Path in which ID is replaced with an id. */
  readonly path: string;
  readonly policies: readonly string[];
  readonly identifier: 'ip' | 'api-key' | null;
}

const client = { policies: ['client'], identifier: 'ip' } as const;
const management = { policies: ['management'], identifier: 'api-key' } as const;
const free = { policies: [], identifier: null } as const;
const KINDS: readonly Kind[] = [
  { weight: 40, method: 'GET', path: '/api/v1/client/ID/environment', ...client },
  { weight: 15, method: 'POST', path: '/api/v1/client/ID/responses', ...client },
  { weight: 12, method: 'GET', path: '/api/v1/management/surveys', ...management },
  { weight: 12, method: 'GET', path: '/api/v1/management/surveys/ID', ...management },
  {
    ...{ weight: 3, method: 'POST', path: '/api/v1/management/storage' },
    ...{ policies: ['management', 'management-storage'], identifier: 'api-key' },
  },
  { weight: 15, method: 'GET', path: '/s/ID', ...free },
  { weight: 3, method: 'GET', path: '/health', ...free },
];

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 21).concat('A');
}

/**
 * @returns a function that returns the next line of a log. The log is always the same, with 1,000 requests a second.
 */
function lineMaker(): () => string {
  const random = seededRandom(1);
  const addresses = Array.from({ length: CLIENTS }, (_, i) => digest(`address ${i}`));
  const keys = Array.from({ length: CLIENTS }, (_, i) => digest(`key ${i}`));
  const ids = Array.from({ length: 500 }, (_, i) => `cm${digest(`id ${i}`).slice(0, 20).toLowerCase()}`);
  let now = BEGIN;
  return () => {
    now += -Math.log(1 - random());
    const { identifier, method, policies, ...kind } = drawn(KINDS, random());
    const client = Math.floor(CLIENTS * random() ** 4);
    const path = kind.path.replace('ID', ids[Math.floor(random() * ids.length)] ?? '');
    const durationMs = Math.round(20 * -Math.log(1 - random()) * 10) / 10;
    const status = random() < 0.96 ? 200 : random() < 0.5 ? 404 : 500;
    const bytes = Math.floor(300 + random() * 4000);
    const identity = identifier === 'ip' ? addresses[client] : keys[client];
    return `${JSON.stringify({
      ...{ time: new Date(now - durationMs).toISOString(), method, path, status },
      ...{ decision: identifier === null ? 'uncovered' : 'allow', id: null },
      ...{ policies, policy: policies[0] ?? null },
      identities: identifier === null ? {} : { [identifier]: identity },
      ...{ address: addresses[client], unproven: [], proves: false },
      ...{ requestBytes: method === 'POST' ? 512 : 0, bytes, upstreamMs: durationMs },
      ...{ storeMs: identifier === null ? null : 0.4, durationMs, cut: false },
    })}\n`;
  };
}

export const LOG = command({
  describe: 'Prints the access log of an imagined busy gateway',
  options: {
    lines: {
      isPositional: true,
      parse: whole(1, 1_000_000_000),
      default: '1000000',
      describe: 'Number of lines',
    },
  },
  async run({ lines }) {
    const next = lineMaker();
    for (let written = 0; written < lines; ) {
      const count = Math.min(LINES_PER_WRITE, lines - written);
      const text = Array.from({ length: count }, next).join('');
      written += count;
      if (!process.stdout.write(text)) await once(process.stdout, 'drain');
    }
    return true;
  },
});
