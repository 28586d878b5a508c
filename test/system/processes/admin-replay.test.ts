/** `POST /api/replay`: the command's result over the admin API, bounded, and without remains. */
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { constants, getPriority } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { ReplayBounds } from '#gateway/operate/admin/replay-upload.ts';
import { startTestAdmin, type TestAdminOptions } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { childrenOf, eventually, lives } from '#test/support/gateway-process.ts';
import { startOperator } from '#test/support/operator.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const BOUNDS: ReplayBounds = {
  policyBytes: 65_536,
  logBytes: 16_777_216,
  silenceMs: 600_000,
  uploadMs: 600_000,
  runMs: 600_000,
};
const row = (limit: number | string): string =>
  `name: items, route: GET /items, identifier: ip, limit: ${limit}, window: 1d`;
const EDITED = policyFile(row(1));

function line(address: string, path = '/items'): string {
  return `${address} - - [22/Nov/2026:08:00:00 +0000] "GET ${path} HTTP/1.1" 200 2 "-" "a"\n`;
}
const LOG = line('192.0.2.1').repeat(3) + line('192.0.2.2') + line('192.0.2.3').repeat(2);
/** A log of two gigabytes when unpacked, so no test waits for its end. */
const ENDLESS = Buffer.concat(Array(500).fill(gzipSync(LOG.repeat(8000))));

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly message?: string;
    readonly problems?: readonly { readonly line: number }[];
    readonly newlyDenied?: number;
  };
}

/** A request that is sent in pieces, with any headers. */
class Upload {
  readonly reply: Promise<Reply>;
  readonly #call: ReturnType<typeof request>;

  constructor(admin: string, query: string, headers: OutgoingHttpHeaders = {}) {
    const type = { 'content-type': 'application/octet-stream' };
    this.#call = request(`${admin}/api/replay${query}`, { method: 'POST', headers: { ...type, ...headers } });
    this.reply = new Promise((resolve, reject) => {
      this.#call.on('error', reject);
      this.#call.on('response', (res) => {
        let text = '';
        res.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        res.on('error', reject);
        res.on('end', () =>
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: JSON.parse(text) }),
        );
      });
    });
    this.reply.catch(() => undefined);
  }

  write(piece: string | Buffer): this {
    this.#call.write(piece);
    return this;
  }

  end(piece: string | Buffer = ''): Promise<Reply> {
    this.#call.end(piece);
    return this.reply;
  }

  leave(): void {
    this.#call.destroy();
  }
}

async function start(t: Test, options: TestAdminOptions = {}) {
  const gateway = await startTestGateway(t, {
    policies: policyFile(row(2)),
    env: { GATEWAY_IDENTITY_SECRET: 'x'.repeat(32) },
  });
  const folder = temporaryFolder(t);
  const admin = await startTestAdmin(t, gateway, {
    temporaryFolder: folder,
    replayBounds: BOUNDS,
    ...options,
  });
  const query = (edited: string): string => `?policyBytes=${Buffer.byteLength(edited)}`;
  return {
    admin,
    folder,
    begin: (edited = EDITED, headers: OutgoingHttpHeaders = {}) => new Upload(admin, query(edited), headers),
    replay: (edited: string, log: string | Buffer) =>
      new Upload(admin, query(edited)).end(Buffer.concat([Buffer.from(edited), Buffer.from(log)])),
    isEmpty: () => readdirSync(folder).length === 0,
  };
}

function replaysOf(pid: number): number[] {
  return childrenOf(pid).filter((child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('floodgate.mjs');
    } catch {
      return false;
    }
  });
}

const untilRunning = (pid = process.pid): Promise<number[]> =>
  eventually(
    'it runs',
    async () => replaysOf(pid),
    (found) => found.length === 1,
  );

t.test('the reply is that of the command', async (t) => {
  const { replay, isEmpty } = await start(t);
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'edited file'), EDITED);
  writeFileSync(join(cwd, 'file in use'), policyFile(row(2)));
  writeFileSync(join(cwd, 'uploaded log'), LOG);
  const { stdout } = await floodgateCommand(
    ['replay', 'uploaded log', '--file', 'edited file', '--against', 'file in use', '--json'],
    { cwd, env: { GATEWAY_IDENTITY_SECRET: 'x'.repeat(32) } },
  );
  const told = JSON.parse(stdout);
  t.match(told, {
    requests: 6,
    denied: 3,
    newlyDenied: 2,
    newlyAllowed: 0,
    identitiesNewlyDenied: 2,
    policies: [{ name: 'items', allowed: 3, denied: 3 }],
    policiesAgainst: [{ name: 'items', allowed: 5, denied: 1 }],
  });
  for (const log of [LOG, gzipSync(LOG)]) {
    const { status, body, headers } = await replay(EDITED, log);
    t.equal(status, 200);
    t.match(headers['content-type'], /^application\/json/);
    t.strictSame({ ...body, linesPerSecond: 0 }, { ...told, linesPerSecond: 0 });
  }
  const back = await replay(policyFile(row(3)), LOG);
  t.match(back.body, { newlyAllowed: 1, identitiesNewlyAllowed: 1, mostNewlyAllowed: [{ count: 1 }] });
  t.ok(isEmpty(), 'the folder is empty');
});

t.test('reports a mistake with its place, and a malformed log in words', async (t) => {
  const { replay, begin, admin, isEmpty } = await start(t);
  const wrong = await replay(policyFile(row('many')), LOG);
  t.equal(wrong.status, 400);
  t.match(wrong.body, {
    message: /^edited file:\d+:\d+: .*limit/,
    problems: [{ line: Number, column: Number, message: String, fix: String }],
  });
  const no = async (log: string | Buffer, message: RegExp): Promise<void> => {
    const reply = await replay(EDITED, log);
    t.equal(reply.status, 400);
    t.match(reply.body, { message, problems: [] });
  };
  await no('', /there is no request in these logs/);
  await no('nonsense\n', /uploaded log: its first lines are no access log.*nonsense/);
  await no(gzipSync(LOG).subarray(0, 10), /there is no request/);
  const broken = await replay(EDITED, gzipSync(LOG.repeat(50_000)).subarray(0, 2000));
  t.match(broken, { status: 200, body: { notes: [/damaged, or ends too early/] } });

  t.match(await begin().end('short'), { status: 400, body: { message: /5 bytes, less than policyBytes/ } });
  t.match(await new Upload(admin, '').end('x'), { status: 400, body: { message: /policyBytes/ } });
  t.match(await new Upload(admin, '?policyBytes=65537').end('x'), {
    status: 400,
    body: { message: /at most 65536 bytes/ },
  });
  t.ok(isEmpty());
});

t.test('files next to the policy file in use can be read, and no others', async (t) => {
  const upstream = await startUpstream(t);
  const named = (file: string): string =>
    policyFile(
      `name: items, route: GET /items, identifier: ip, limit: 9, window: 1d, overridesFile: ${file}`,
    );
  const home = temporaryFolder(t);
  writeFileSync(join(home, 'partners.txt'), 'address 192.0.2.1 1\n');
  writeFileSync(join(home, 'secrets.txt'), 'PASSWORD=secret\n');
  const admin = await startAt(t, home, named('partners.txt'), upstream.origin);
  const send = (edited: string): Promise<Reply> =>
    new Upload(admin, `?policyBytes=${edited.length}`).end(edited + LOG);
  t.match(await send(named('partners.txt').replace('limit: 9', 'limit: 8')), {
    status: 200,
    body: { denied: 2 },
  });
  const other = await send(named('secrets.txt'));
  t.match(other, { status: 400, body: { message: /secrets.txt cannot be read/ } });
  t.notMatch(JSON.stringify(other.body), /PASSWORD/);
});

/** Starts a gateway whose policy file is in `home`. @returns its admin listener */
async function startAt(t: Test, home: string, policies: string, upstream: string): Promise<string> {
  const file = join(home, 'policies.yaml');
  writeFileSync(file, policies);
  const gateway = await startTestGateway(t, { upstream, env: { GATEWAY_POLICIES: file } });
  return startTestAdmin(t, gateway, { replayBounds: BOUNDS });
}

t.test('only for authorized callers', async (t) => {
  const { begin, isEmpty } = await start(t, { token: 'a secret' });
  const status = async (headers: OutgoingHttpHeaders): Promise<number> =>
    (await begin(EDITED, headers).end(EDITED + LOG)).status;
  const authorization = 'Bearer a secret';
  t.equal(await status({}), 401);
  t.equal(await status({ origin: 'https://evil.example' }), 403);
  t.equal(await status({ authorization, 'content-type': 'application/json' }), 415);
  t.equal(await status({ authorization, 'content-type': 'multipart/form-data; boundary=x' }), 415);
  t.equal(await status({ authorization }), 200);
  t.ok(isEmpty());
});

t.test('refuses a large log, a second replay, silence, and long runs', async (t) => {
  const { replay, begin, isEmpty } = await start(t);
  t.match(await replay(EDITED, Buffer.alloc(BOUNDS.logBytes + 1, 'x')), {
    status: 413,
    body: { message: /at most 16777216 bytes/ },
  });
  const first = begin().write(EDITED);
  await until(() => !isEmpty(), 'it has begun');
  t.match(await replay(EDITED, LOG), { status: 503, headers: { 'retry-after': '5' } });
  t.equal((await first.end(LOG)).status, 200);
  t.equal((await replay(EDITED, LOG)).status, 200);

  const silent = await start(t, { replayBounds: { ...BOUNDS, silenceMs: 100 } });
  t.match(await silent.begin().write(EDITED).reply, { status: 408, headers: { connection: 'close' } });
  const long = await start(t, { replayBounds: { ...BOUNDS, runMs: 1 } });
  t.match(await long.replay(EDITED, LOG), { status: 400, body: { message: /longer than 0.001 s/ } });
  t.ok(silent.isEmpty() && long.isEmpty());
  const { replay: send } = await start(t, { temporaryFolder: '/nowhere' });
  t.match(await send(EDITED, LOG), { status: 503, body: { message: /\/nowhere \(ENOENT\)/ } });
});

t.test('a client that leaves ends its process and deletes its folder', async (t) => {
  const { begin, replay, isEmpty, folder } = await start(t);
  const early = begin().write(EDITED);
  await until(() => !isEmpty(), 'it has begun');
  early.leave();
  await eventually('it is gone', async () => isEmpty(), Boolean);

  const late = begin();
  void late.end(Buffer.concat([Buffer.from(EDITED), ENDLESS]));
  const [pid = 0] = await untilRunning();
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const { NODE_COMPILE_CACHE: cache } = process.env;
  t.strictSame(
    environment.filter((one) => /^(?:HOME|PATH|NODE_\w+)=/.test(one) && !one.startsWith('NODE_CHANNEL')),
    cache === undefined ? [] : [`NODE_COMPILE_CACHE=${cache}`],
    'the process gets only the compile cache',
  );
  t.equal(getPriority(pid), constants.priority.PRIORITY_BELOW_NORMAL, 'requests come first');
  late.leave();
  await eventually('it is gone', async () => isEmpty() && !lives(pid), Boolean);

  const left = join(folder, 'floodgate-replay-of-a-killed-one');
  mkdirSync(left);
  utimesSync(left, 0, 0);
  t.equal((await replay(EDITED, LOG)).status, 200);
  t.ok(isEmpty(), 'files of a killed gateway are deleted');
});

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  t.test(`a gateway that ends by ${signal} leaves no process behind`, async (t) => {
    const folder = temporaryFolder(t);
    const operator = await startOperator(t, { TMPDIR: folder });
    const upload = new Upload(operator.admin, `?policyBytes=${EDITED.length}`);
    void upload.end(Buffer.concat([Buffer.from(EDITED), ENDLESS]));
    const { pid = 0 } = operator.process.child;
    const [child = 0] = await untilRunning(pid);
    process.kill(pid, signal);
    await until(() => !lives(child), 'it is gone');
    if (signal === 'SIGTERM') await until(() => readdirSync(folder).length === 0, 'so is its folder');
  });
