/** A million lines through the command, in a small heap: its counts equal those of a few lines of plain code. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
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
  #rest = '';

  add(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const { time, path, identities } = JSON.parse(line);
      this.#times.push(Date.parse(time));
      const key = identities['api-key'];
      if (path.startsWith('/api/v1/client/')) this.#charges.push([`client ${identities.ip}`]);
      else if (path === '/api/v1/management/storage')
        this.#charges.push([`management ${key}`, `storage ${key}`]);
      else this.#charges.push(path.startsWith('/api/v1/management/') ? [`management ${key}`] : []);
    }
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

t.test('replay counts a million lines in 128 MB of heap', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  const log = spawn(process.execPath, [join(projectRoot, 'bench/main.ts'), 'log', String(LINES)]);
  const replay = spawn(
    process.execPath,
    // Tables of counters are outside of the heap; everything that grows with the log would be inside.
    ['--max-old-space-size=128', join(projectRoot, 'gateway/cli/main.ts'), 'replay', '-', '--json'],
    { cwd },
  );
  t.teardown(() => {
    log.kill();
    replay.kill();
  });
  const output = Promise.all([text(replay.stdout), text(replay.stderr)]);
  const model = new Model();
  log.stdout.setEncoding('latin1');
  for await (const chunk of log.stdout) {
    model.add(chunk);
    if (!replay.stdin.write(chunk, 'latin1')) await once(replay.stdin, 'drain');
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
