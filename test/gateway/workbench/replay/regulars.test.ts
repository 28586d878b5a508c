/** `floodgate replay` with `newcomers`: regulars are learned from the log, as a plain model does. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LIMIT = 10;
const FILE = policyFile(
  `name: site, route: "GET /*", identifier: ip, limit: 1000, window: 1d, newcomers: { limit: ${LIMIT}, window: 1d }`,
);

interface Line {
  readonly day: number;
  readonly client: string;
  readonly status: number;
}

/** Regulars come each day, one client from the second day on, and a swarm with new addresses each day. */
function linesOf(days: number): Line[] {
  const regulars = Array.from({ length: 6 }, (_, i) => `192.0.2.${i}`);
  return Array.from({ length: days }, (_, day) => {
    const swarm = Array.from({ length: 30 }, (_, i) => `198.51.${day}.${i}`);
    const late = day === 0 ? [] : ['203.0.113.1', '203.0.113.1'];
    // This client comes daily too, but gets no good replies.
    const clients = [...regulars, ...late, '203.0.113.2', ...swarm, ...regulars, ...late];
    return clients.map((client) => ({ day, client, status: client === '203.0.113.2' ? 404 : 200 }));
  }).flat();
}

/** Decides without the code of the gateway. @param actsOn the first day on which the limit acts */
function model(lines: readonly Line[], actsOn: number, newPerDay = 1000) {
  const visits = new Map<string, Set<number>>();
  const used = new Map<number, number>();
  const stored = new Map<number, number>();
  const result = { allowed: 0, denied: 0, shadowDenied: 0 };
  for (const { day, client, status } of lines) {
    const seen = visits.get(client) ?? new Set();
    if (seen.size < 2) {
      const before = used.get(day) ?? 0;
      if (before < LIMIT) used.set(day, before + 1);
      else if (day < actsOn) result.shadowDenied++;
      else {
        result.denied++;
        continue;
      }
    }
    result.allowed++;
    if (status >= 400) continue;
    const today = stored.get(day) ?? 0;
    if (seen.size === 0) {
      if (today === newPerDay) continue;
      stored.set(day, today + 1);
    }
    visits.set(client, seen.add(day));
  }
  return result;
}

async function replay(t: Test, lines: readonly Line[], file = FILE) {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), file);
  const text = lines.map(({ day, client, status }, i) => {
    const seconds = i - lines.findIndex((one) => one.day === day);
    const time = new Date(seconds * 1000).toISOString().slice(11, 19);
    return `${client} - - [0${day + 1}/Nov/2026:${time} +0000] "GET /a HTTP/1.1" ${status} 2 "-" "a"\n`;
  });
  writeFileSync(join(cwd, 'a.log'), text.join(''));
  const { stdout } = await floodgateCommand(['replay', 'a.log', '--json'], { cwd });
  return JSON.parse(stdout);
}

t.test('four days: regulars pass, and the swarm shares the limit from the third day', async (t) => {
  const lines = linesOf(4);
  const { allowed, denied, shadowDenied } = model(lines, 2);
  t.ok(denied > 30 && shadowDenied > 30);
  const result = await replay(t, lines);
  t.match(result, { requests: lines.length, allowed, denied });
  const [site, newcomers] = result.policies;
  t.match(site, { denied: 0, shadowDenied: 0 });
  t.match(newcomers, { name: 'site.newcomers', denied, shadowDenied, mode: 'enforce' });
  t.match(result.notes, [/^policies with newcomers act from 2026-11-03T00:00:00.000Z; before, nobody can/]);
});

t.test('newPerDay holds in a replay too', async (t) => {
  const lines = linesOf(4);
  const { allowed, denied } = model(lines, 2, 4);
  t.ok(denied > model(lines, 2).denied, 'two of the six regulars stay newcomers for a day more');
  t.match(await replay(t, lines, `${FILE}\nregulars: { newPerDay: 4 }`), { allowed, denied });
});

t.test('a log of two days is too short, and says so', async (t) => {
  const lines = linesOf(2);
  const { shadowDenied } = model(lines, 2);
  const result = await replay(t, lines);
  t.match(result, { requests: lines.length, allowed: lines.length, denied: 0 });
  t.match(result.policies[1], { denied: 0, shadowDenied });
  t.match(result.notes, [/would act from 2026-11-03T00:00:00.000Z, after the end of the log/]);
});
