/** A million lines through the command, in a small heap: its counts equal those of a few lines of plain code. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { seededRandom } from '#test/support/seed.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LINES = 1_000_000;
const LIMITS = { client: 40, management: 25, storage: 3 };
const POLICIES = `version: 1
identifiers: { ip: { source: client-address }, api-key: { source: [{ header: x-api-key }] } }
policies:
  - { name: client, route: "* /api/v1/client/*", identifier: ip, limit: ${LIMITS.client}, window: 1m }
  - { name: management, route: "* /api/v1/management/*", identifier: api-key, limit: ${LIMITS.management}, window: 1m }
  - { name: storage, route: POST /api/v1/management/storage, identifier: api-key, limit: ${LIMITS.storage}, window: 1m }
`;

type Name = keyof typeof LIMITS;

/** A model of fixed windows: a request is charged to all policies or to none. */
class Model {
  readonly #times: number[] = [];
  readonly #charges: (readonly string[])[] = [];

  add(line: string): void {
    const { time, policies, address } = JSON.parse(line);
    this.#times.push(Date.parse(time));
    this.#charges.push(policies.map((name: string) => `${name} ${address}`));
  }

  count(): Record<string, number> {
    const order = Uint32Array.from(this.#times.keys()).sort(
      (a, b) => (this.#times[a] ?? 0) - (this.#times[b] ?? 0) || a - b,
    );
    const used = new Map<string, number>();
    const counts: Record<string, number> = {
      allowed: 0,
      denied: 0,
      uncovered: 0,
      client: 0,
      management: 0,
      storage: 0,
    };
    const note = (name: string): void => {
      counts[name] = (counts[name] ?? 0) + 1;
    };
    for (const i of order) {
      const window = Math.floor((this.#times[i] ?? 0) / 60_000);
      const charges = (this.#charges[i] ?? []).map((who) => `${who} ${window}`);
      const limitOf = (charge: string): number => LIMITS[charge.split(' ')[0] as Name];
      const full = charges.filter((charge) => (used.get(charge) ?? 0) >= limitOf(charge));
      if (charges.length === 0) note('uncovered');
      else if (full.length > 0) {
        note('denied');
        for (const charge of full) note(charge.split(' ')[0] ?? '');
      } else {
        note('allowed');
        for (const charge of charges) used.set(charge, (used.get(charge) ?? 0) + 1);
      }
    }
    return counts;
  }
}

/** The log of a busy gateway: 1,000 requests a second of 30,000 clients, some of which send much more than others. */
function* linesOf(count: number): Generator<string> {
  const random = seededRandom(1);
  let now = Date.UTC(2026, 10, 20, 8);
  for (let i = 0; i < count; i++) {
    now -= Math.log(1 - random());
    const [path, identifier, policies] = KINDS[Math.floor(KINDS.length * random() ** 1.5)] ?? KINDS[0];
    const digest = `client-${Math.floor(30_000 * random() ** 4)}`.padEnd(22, 'A');
    const durationMs = Math.round(-20 * Math.log(1 - random()));
    yield `${JSON.stringify({
      ...{ time: new Date(now - durationMs).toISOString(), method: 'POST', path, status: 200, durationMs },
      ...{ decision: identifier === null ? 'uncovered' : 'allow', policies, address: digest },
      ...{ identities: identifier === null ? {} : { [identifier]: digest }, unproven: [], proves: false },
    })}\n`;
  }
}

const KINDS = [
  ['/api/v1/client/1/environment', 'ip', ['client']],
  ['/api/v1/management/surveys', 'api-key', ['management']],
  ['/s/1', null, []],
  ['/api/v1/management/storage', 'api-key', ['management', 'storage']],
] as const;

t.test('replay counts a million lines in 128 MB of heap', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  const replay = spawn(
    process.execPath,
    // Tables of counters are outside of the heap; everything that grows with the log would be inside.
    ['--max-old-space-size=128', join(projectRoot, 'gateway/cli/main.ts'), 'replay', '-', '--json'],
    { cwd },
  );
  t.teardown(() => replay.kill());
  const output = Promise.all([text(replay.stdout), text(replay.stderr)]);
  const model = new Model();
  for (const line of linesOf(LINES)) {
    model.add(line);
    if (!replay.stdin.write(line)) await once(replay.stdin, 'drain');
  }
  replay.stdin.end();
  const [stdout, stderr] = await output;
  t.equal(stderr, '');
  const result = JSON.parse(stdout);
  const { allowed, denied, uncovered, ...deniedBy } = model.count();
  t.match(result, {
    lines: LINES,
    requests: LINES,
    unreadable: 0,
    allowed,
    denied,
    uncovered,
    malformed: 0,
    unknown: 0,
  });
  t.ok(Number(denied) > LINES / 20);
  for (const { name, denied: count } of result.policies) t.equal(count, deniedBy[name], name);
});
