/** The access log has one line for every request, however it ended. */
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, renameSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AccessLog } from '#gateway/observe/access-log/access-log.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { partsIn } from '#test/support/parts.ts';
import { projectRoot } from '#test/support/process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile(
  'name: one, route: "GET,POST /one/*", identifier: ip, limit: 1, window: 366d',
  'name: all, route: "GET,POST /one/*", identifier: api-key, limit: 100, window: 366d',
  'name: few, route: GET /few, identifier: everyone, limit: 1, window: 366d, mode: mark',
);

type Line = Record<string, unknown>;

interface Logged extends TestGateway {
  readonly file: string;
  lines(): Line[];
  /** Returns the lines once there are this many. */
  line(count: number): Promise<Line[]>;
}

async function start(t: Test, upstream: string, env: Record<string, string> = {}): Promise<Logged> {
  const file = join(temporaryFolder(t), 'access.log');
  const gateway = await startTestGateway(t, {
    upstream,
    policies: POLICIES,
    env: { GATEWAY_ACCESS_LOG: file, ...env },
  });
  const lines = (): Line[] => jsonLines(file);
  return {
    ...gateway,
    file,
    lines,
    async line(count) {
      await until(() => lines().length >= count);
      return lines();
    },
  };
}

t.test('writes a line for admitted, denied, uncovered, malformed and unreadable requests', async (t) => {
  const upstream = await startUpstream(t);
  const gateway = await start(t, upstream.origin);
  const { origin, port } = gateway;
  const post = { method: 'POST', body: 'four', headers: { 'x-api-key': 'secret-key' } };
  await (await fetch(`${origin}/one/../one/a?q=secret`, post)).text();
  t.match((await gateway.line(1))[0], {
    time: /^\d{4}-\d\d-\d\dT.*Z$/,
    method: 'POST',
    path: '/one/a',
    status: 200,
    decision: 'allow',
    id: null,
    policies: ['one', 'all'],
    policy: 'one',
    identities: { ip: /^[\w-]{22}$/, 'api-key': /^[\w-]{22}$/ },
    address: /^[\w-]{22}$/,
    unproven: ['api-key'],
    proves: true,
    requestBytes: 4,
    upstreamMs: Number,
    storeMs: Number,
    durationMs: Number,
    cut: false,
  });
  const denied = await fetch(`${origin}/one/a`);
  await denied.text();
  const [, second] = await gateway.line(2);
  t.match(second, { status: 429, decision: 'deny', policy: 'one', upstreamMs: null, proves: false });
  t.equal(second?.id, denied.headers.get('x-gateway-decision'));
  t.ok(Number(second?.bytes) > 300);
  await (await fetch(`${origin}/else`)).text();
  await sendRaw(port, 'GET /one/a%00b?x HTTP/1.1\r\nHost: a\r\n\r\n').ended();
  await sendRaw(port, 'nonsense\r\n\r\n').ended();
  const lines = await gateway.line(5);
  t.match(lines[2], { path: '/else', status: 200, decision: 'uncovered', policies: [], identities: {} });
  t.equal(
    lines[2]?.address,
    (second?.identities as Record<string, string> | undefined)?.ip,
    'the line has an identity without a policy too',
  );
  t.match(lines[3], { path: '/one/a%00b', status: 400, decision: 'malformed' });
  t.match(lines[4], { method: null, path: null, status: 400, decision: 'malformed' });
  t.notMatch(readFileSync(gateway.file, 'utf8'), /secret|127\.0\.0\.1/);
});

t.test('writes a line for failed, abandoned, pipelined and upgraded requests', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url !== '/silent') res.end('ok');
  });
  upstream.server.on('upgrade', (_req, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('end', () => socket.end());
  });
  const gateway = await start(t, upstream.origin);
  const { port } = gateway;
  const gone = request({ port, path: '/silent' });
  gone.on('error', () => undefined);
  gone.end();
  await new Promise((resolve) => upstream.server.once('request', resolve));
  gone.destroy();
  t.match((await gateway.line(1))[0], { path: '/silent', status: null, cut: true });

  const twice = 'GET /p HTTP/1.1\r\nHost: a\r\n\r\n';
  const pipelined = sendRaw(port, twice + twice + twice);
  t.equal((await gateway.line(4)).filter(({ path }) => path === '/p').length, 3);
  pipelined.socket.destroy();

  const socket = sendRaw(
    port,
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  );
  await socket.until(/101 Switching/);
  t.equal(gateway.lines().length, 4, 'an upgrade is logged when it ends');
  socket.socket.end();
  t.match((await gateway.line(5))[4], { path: '/ws', status: 101, cut: false });

  upstream.server.closeAllConnections();
  await new Promise((resolve) => upstream.server.close(resolve));
  await (await fetch(`http://127.0.0.1:${port}/down`)).text();
  t.match((await gateway.line(6))[5], {
    path: '/down',
    status: 502,
    decision: 'uncovered',
    upstreamMs: null,
  });
});

t.test('requests whose end is that of the gateway have a line', async (t) => {
  for (const GATEWAY_OWN_PARSER of ['0', '1'])
    for (const who of ['the client leaves', 'the deadline'] as const) {
      const upstream = await startUpstream(t, () => undefined);
      const arrived = once(upstream.server, 'request');
      const isCut = who === 'the deadline';
      const gateway = await start(t, upstream.origin, {
        GATEWAY_OWN_PARSER,
        GATEWAY_DRAIN_TIMEOUT_MS: isCut ? '10' : '600000',
      });
      const leave = ask(gateway.port);
      await arrived;
      if (!isCut) leave();
      await gateway.gateway.close();
      t.match(gateway.lines(), [{ path: '/end', status: null, cut: true }], `${who}: ${GATEWAY_OWN_PARSER}`);
      leave();
    }
});

/** @returns a function that leaves */
function ask(port: number): () => void {
  const { socket } = sendRaw(port, 'GET /end HTTP/1.1\r\nHost: a\r\n\r\n');
  return () => socket.destroy();
}

t.test('names the policies that mark a request', async (t) => {
  const gateway = await start(t, (await startUpstream(t)).origin);
  for (let i = 0; i < 2; i++) await (await fetch(`${gateway.origin}/few`)).text();
  t.match(await gateway.line(2), [
    { decision: 'allow', marked: [] },
    { decision: 'allow', marked: ['few'] },
  ]);
});

t.test('a file that was renamed is created again', async (t) => {
  const upstream = await startUpstream(t);
  const gateway = await start(t, upstream.origin);
  await (await fetch(`${gateway.origin}/before`)).text();
  await gateway.line(1);
  renameSync(gateway.file, `${gateway.file}.1`);
  gateway.gateway.reload();
  await until(() => {
    try {
      return readFileSync(gateway.file, 'utf8') === '';
    } catch {
      return false;
    }
  });
  await (await fetch(`${gateway.origin}/after`)).text();
  t.match((await gateway.line(1))[0], { path: '/after' });
});

t.test('writes the sampled part of the requests', async (t) => {
  const upstream = await startUpstream(t);
  const gateway = await start(t, upstream.origin, { GATEWAY_ACCESS_LOG_SAMPLE: '0.25' });
  for (let i = 0; i < 40; i++) await (await fetch(`${gateway.origin}/${i % 2}`)).text();
  await gateway.gateway.close();
  const paths = gateway.lines().map(({ path }) => path);
  t.ok(paths.length >= 9 && paths.length <= 11, String(paths.length));
  t.ok(Math.abs(paths.filter((path) => path === '/0').length - paths.length / 2) < 2, 'half of each kind');
});

t.test('a reader that is too slow loses lines, and delays nobody', async (t) => {
  const warnings: object[] = [];
  const log = new AccessLog({
    file: '/dev/full',
    share: 1,
    clock: () => 0,
    warn: (fields) => void warnings.push(fields),
  });
  const line = {
    path: 'a'.repeat(1000),
    policies: [],
    uncounted: [],
    identities: {},
    unproven: [],
    marked: [],
  };
  for (let i = 0; i < 10_000; i++) log.write(line);
  t.ok(log.lost > 5000);
  await until(() => warnings.length > 0);
  t.equal(warnings.length, 1, 'one warning');
  await log.close();
});

t.test('a process that has to end at once does not wait for a full disk', async (t) => {
  const program = `
    import { AccessLog } from '#gateway/observe/access-log/access-log.ts';
    const log = new AccessLog({
      file: '/dev/full',
      share: 1,
      clock: () => 0,
      warn: () => process.exit(3),
    });
    for (let i = 0; i < 100; i++)
      log.write({ path: 'a'.repeat(1000), policies: [], uncounted: [], identities: {}, unproven: [] });`;
  const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: projectRoot,
    timeout: 120_000,
    killSignal: 'SIGKILL',
  });
  t.equal(status, 3, 'it ends by itself');
});

t.test('errors for wrong settings say how to correct them', async (t) => {
  const options = { share: 1, clock: () => 0, warn: () => undefined };
  t.throws(() => new AccessLog({ file: '/nowhere/a.log', ...options }), /GATEWAY_ACCESS_LOG.*ENOENT/);
  t.notOk(partsIn({ GATEWAY_UPSTREAM: 'http://127.0.0.1:1' }).includes('accessLog'));
});

t.test('a pipe that nobody reads is an error at the start, and is not waited for', async (t) => {
  const pipe = join(temporaryFolder(t), 'pipe');
  execFileSync('mkfifo', [pipe]);
  const { origin } = await startUpstream(t);
  await t.rejects(start(t, origin, { GATEWAY_ACCESS_LOG: pipe }), /pipe cannot be written \(ENXIO\)/);
});
