/**
 * `node bench/profile.ts SCENARIO [SECONDS] [FOLDER]`: where the gateway's time goes, by file and by function, of the
 * sampled time that is not idle. FOLDER is another working tree; the profile itself is kept for Chrome's DevTools.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '#test/support/ports.ts';
import { wrk } from './load/wrk.ts';
import { Processes } from './processes.ts';
import { SCENARIOS } from './scenarios.ts';
import { startGateway } from './targets/gateway.ts';
import { startRedis } from './targets/redis.ts';
import { startUpstream } from './targets/upstream.ts';
import { BENCH, ROOT } from './tools.ts';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const WARM_SECONDS = 4;
const LINES = 45;

const [name, seconds = '6', root = ROOT] = process.argv.slice(2);
const scenario = SCENARIOS.find((one) => one.name === name);
if (scenario === undefined) {
  process.stderr.write(
    `usage: node bench/profile.ts ${SCENARIOS.map((one) => one.name).join('|')} [SECONDS] [FOLDER]\n`,
  );
  process.exit(1);
}

const processes = new Processes();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => processes.stopAll().finally(() => process.exit(130)));
const folder = join(BENCH, 'results', `profile-${scenario.name}-${process.pid}`);
mkdirSync(folder, { recursive: true });
try {
  const upstreamPort = await freePort();
  await startUpstream(processes, upstreamPort);
  const store = await startRedis(processes, await freePort());
  const port = await freePort();
  const gateway = await startGateway(
    { processes, scenario, port, upstreamPort, redisPort: store.port, directory: processes.directory },
    root,
    { nodeFlags: ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500'] },
  );
  const load = wrk(processes.directory);
  await load(port, scenario, WARM_SECONDS);
  const { requests } = await load(port, scenario, Number(seconds));
  process.stdout.write(`${requests} requests in ${seconds} s while profiling\n`);
  await gateway.stop();
  await store.stop();
} finally {
  await processes.stopAll();
}
const file = join(folder, readdirSync(folder)[0] ?? '');
tell(JSON.parse(readFileSync(file, 'utf8')) as Profile);
process.stdout.write(`${file}\n`);

function tell(profile: Profile): void {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const files = new Map<string, number>();
  let busy = 0;
  for (const [i, id] of profile.samples.entries()) {
    const frame = frames.get(id);
    const delta = profile.timeDeltas[i] ?? 0;
    if (frame === undefined || frame.functionName === '(idle)') continue;
    busy += delta;
    const where = frame.url.replace(/^file:\/\/.*?\/(gateway|node_modules)\//, '$1/');
    const label = `${frame.functionName || '(anonymous)'} ${where}:${frame.lineNumber + 1}`;
    functions.set(label, (functions.get(label) ?? 0) + delta);
    const part = /^(gateway\/|node_modules\/(?:@[^/]+\/)?[^/]+|node:)/.exec(where)?.[1] ?? frame.functionName;
    const group = part === 'gateway/' ? where : part === 'node:' ? where : part;
    files.set(group, (files.get(group) ?? 0) + delta);
  }
  for (const table of [files, functions]) {
    const sorted = [...table].sort(([, a], [, b]) => b - a).slice(0, LINES);
    for (const [label, time] of sorted)
      process.stdout.write(`${((100 * time) / busy).toFixed(1).padStart(6)} %  ${label}\n`);
    process.stdout.write('\n');
  }
}
