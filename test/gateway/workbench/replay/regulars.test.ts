/** `floodgate replay` with `newcomers`: regulars are learned from the log, as a plain model does. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { DAY_MS } from '#gateway/policy/groups.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

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
function model(lines: readonly Line[], actsOn: number) {
  const visits = new Map<string, Set<number>>();
  const used = new Map<number, number>();
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

t.test('a log of two days is too short, and says so', async (t) => {
  const lines = linesOf(2);
  const { shadowDenied } = model(lines, 2);
  const result = await replay(t, lines);
  t.match(result, { requests: lines.length, allowed: lines.length, denied: 0 });
  t.match(result.policies[1], { denied: 0, shadowDenied });
  t.match(result.notes, [/act from 2026-11-03T00:00:00.000Z, after the end of the log;/]);
});

const WITH_KEYS = `${FILE}\nregulars: { keys: [api-key] }`;

t.test('our own log: invented keys make no regulars, and the key that works does', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'networks.txt'), '203.0.113.0/24 AS64500\n');
  writeFileSync(
    join(cwd, 'policies.yaml'),
    WITH_KEYS.replace('regulars: {', 'regulars: { never: { network: networks.txt },'),
  );
  const log = join(cwd, 'own.log');
  const upstream = await startUpstream(t, (req, res) => {
    res.writeHead(req.headers['x-api-key'] === 'fbk_good' ? 200 : 401).end();
  });
  const { port } = await startTestGateway(t, {
    upstream,
    policies: WITH_KEYS,
    env: { ...BEHIND_PROXY, GATEWAY_ACCESS_LOG: log },
  });
  const lines = (): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const ask = async (from: string, key: string): Promise<void> => {
    const before = lines().length;
    await send(port, '/a', { headers: { 'x-forwarded-for': from, 'x-api-key': key } });
    await until(() => lines().length > before);
  };
  writeFileSync(log, '');
  for (let i = 0; i < 8; i++) await ask(`192.0.2.${i}`, `fbk_invented-${i}`);
  for (let i = 0; i < 6; i++) await ask(`198.51.100.${i}`, 'fbk_good');
  for (let i = 8; i < 14; i++) await ask(`192.0.2.${i}`, `fbk_invented-${i}`);
  t.match(JSON.parse(lines()[0] ?? ''), { unproven: ['api-key'] });
  t.match(JSON.parse(lines()[9] ?? ''), { unproven: [] });
  // The log begins three days before, so the limit acts.
  const [first = ''] = lines();
  const early = first.replace(
    /"time":"[^"]*"/,
    `"time":"${new Date(Date.now() - 3 * DAY_MS).toISOString()}"`,
  );
  writeFileSync(log, `${[early, ...lines()].join('\n')}\n`);
  const { stdout } = await floodgateCommand(['replay', 'own.log', '--json'], { cwd });
  const result = JSON.parse(stdout);
  t.match(result, { requests: 21, denied: 5 });
  t.match(result.policies[1], { name: 'site.newcomers', denied: 5 });
  t.match(result.notes, [/^these are ignored, .*: regulars.never$/, /^policies with newcomers act from/]);
});

t.test('a log without the keys that make regulars says so', async (t) => {
  const lines = linesOf(3);
  const result = await replay(t, lines, WITH_KEYS);
  t.match(result.notes, [
    `site.newcomers counted ${lines.length} requests with or without api-key, because the log does not have it`,
    /^policies with newcomers act from/,
  ]);
});
