/**
 * The recording on the README's first screen is a session with two gateways and a Redis. This test holds it again and
 * compares the output. To write the picture: UPDATE=1 npx node test/system/pages/recording.test.ts
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { startShell } from '#test/docs/shell.ts';
import { drawSession, readSession, type Session, textOf } from '#test/docs/terminal-picture.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const execute = promisify(execFile);
const PICTURE = join(projectRoot, 'docs/pictures/terminal.svg');
const TITLE =
  'A terminal: one exact limit over two gateways, a refusal that is explained, and a limit that is rehearsed';
/** Stands for the id of the last refusal. */
const ID = '7k2q9x0m4c5t00000001hbd3vz';
const LOGINS = "login 'localhost:808[1-2]/login?[1-15]'";
const SCRIPT: Session = [
  { command: `login() { curl -sZo /dev/null -w '%{http_code}\\n' -d= "$1" | sort | uniq -c; }` },
  { heading: 'Two gateways, one limit of 10 logins a day: 15 at once to each of them' },
  { command: LOGINS },
  { heading: 'Redis goes away and comes back, and the limit stays' },
  { command: 'redis-cli shutdown' },
  { command: LOGINS },
  { command: 'redis-server redis.conf' },
  { command: LOGINS },
  { heading: 'Why was this request refused?' },
  { command: 'curl -sD- -o /dev/null -d= localhost:8081/login | grep decision' },
  { command: `npx floodgate why ${ID}` },
  { heading: 'What would half the limit have refused yesterday?' },
  {
    command: 'npx floodgate replay access.log --file half.yaml --against policies.yaml | grep Compared',
  },
  { heading: 'Redis has digests: no address, no API key' },
  { command: "redis-cli --scan --pattern '*:login*'" },
];

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
policies:
  - name: login
    route: POST /login
    identifier: ip
    limit: 10
    window: 1d
`;

const REFUSAL = /\b[0-9a-z]{26}\b/g;

/** Replaces what differs from run to run, and names of this machine. */
function comparable(text: string): string {
  return text
    .replaceAll(REFUSAL, ID)
    .replaceAll(/(?<before>refused at )\d{4}-\d\d-\d\dT[\d:.]+Z/g, '$<before>2026-11-27T06:30:12.345Z')
    .replaceAll(/(?<before>Retry at: )\d{4}-\d\d-\d\dT[\d:.]+Z/g, '$<before>2026-11-28T00:00:00.000Z')
    .replaceAll(/ in \S+:\d+:[0-9a-f]{8}/g, ' in gateway-1:1:5f0c2a9e')
    .replaceAll(/version [0-9a-f]{12}/g, 'version b2f7d6c01a9e')
    .replaceAll(/(?<![\w-])[\w-]{22}(?![\w-])/g, 'BIBL6vGlykAjmy6Ss8nJow');
}

t.test('the session prints what the picture shows', async (t) => {
  const cwd = temporaryFolder(t);
  const redisPort = await freePort();
  writeFileSync(
    join(cwd, 'redis.conf'),
    `port ${redisPort}\nbind 127.0.0.1\ndaemonize yes\nsave 3600 1\ndir ${cwd}\n`,
  );
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  writeFileSync(join(cwd, 'half.yaml'), POLICIES.replace('limit: 10', 'limit: 5'));
  writeFileSync(join(cwd, 'access.log'), yesterday());
  const shell = startShell(t, cwd);
  await shell.run(`redis-cli() { command redis-cli -p ${redisPort} "$@"; }; redis-server redis.conf`);
  t.teardown(() =>
    execute('redis-cli', ['-p', String(redisPort), 'shutdown', 'nosave']).catch(() => undefined),
  );
  const upstream = await startUpstream(t);
  const gateways = await Promise.all(
    ['GATEWAY_PORT', 'GATEWAY_PORT'].map(async () => {
      const env = await environment({
        GATEWAY_UPSTREAM: upstream.origin,
        GATEWAY_POLICIES: join(cwd, 'policies.yaml'),
        GATEWAY_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      });
      await launch(t, env);
      return env;
    }),
  );
  const [one = {}] = gateways;
  const ports = gateways.map(({ GATEWAY_PORT }) => GATEWAY_PORT);
  await shell.run(`npx() { shift; ${process.execPath} ${projectRoot}/gateway/cli/floodgate.mjs "$@"; }`);
  const store = async (): Promise<readonly string[]> =>
    Promise.all(
      gateways.map(async ({ GATEWAY_ADMIN_PORT }) => {
        const { store } = (await (await fetch(`http://127.0.0.1:${GATEWAY_ADMIN_PORT}/readyz`)).json()) as {
          store: string;
        };
        return store;
      }),
    );
  await insideLongWindow(86_400_000);

  const why = (id: string): string =>
    `npx floodgate why ${id} --gateway http://127.0.0.1:${one.GATEWAY_ADMIN_PORT}`;
  const login = `curl -sD- -o /dev/null -d= 127.0.0.1:${ports[0]}/login | grep decision`;
  /** Explains another refusal. */
  const explained = async (): Promise<string> => {
    const [refused = ''] = (await shell.run(login)).match(REFUSAL) ?? [];
    // Refusals are written a moment later.
    await new Promise((resolve) => setTimeout(resolve, 300));
    return shell.run(why(refused));
  };
  const isStored = (text: string): boolean => !text.includes('the rest is not stored');

  let id = '';
  const session: Session[number][] = [];
  for (const entry of SCRIPT) {
    if (entry.command === undefined) {
      session.push(entry);
      continue;
    }
    const command = entry.command
      .replace('localhost:808[1-2]', `127.0.0.1:{${ports}}`)
      .replace('localhost:8081', `127.0.0.1:${ports[0]}`)
      .replace(`npx floodgate why ${ID}`, why(id));
    // The refusals of the outage fill a batch. Until it is written, further ones of this client are not recorded.
    if (command === login) await eventually('refusals are recorded again', explained, isStored);
    const printed = await eventually(
      command,
      async () => (await shell.run(command)).replaceAll('\r', '').trimEnd(),
      isStored,
    );
    [id = id] = printed.match(REFUSAL) ?? [];
    const output = comparable(printed.replaceAll(`${cwd}/`, ''));
    session.push({ ...entry, output });
    // Both gateways have noticed that Redis is away, or back.
    const isAway = entry.command === 'redis-cli shutdown';
    if (isAway || entry.command.startsWith('redis-server'))
      await eventually('the store', store, (all) => all.every((state) => (state === 'available') !== isAway));
  }

  const shown = textOf(session);
  t.match(shown, /^ +10 200\n +20 429$/m, 'exact');
  t.equal(shown.match(/^ +30 429$/gm)?.length, 2, 'also while Redis is away, and after it');
  t.notMatch(shown.slice(shown.indexOf('Redis has')), '127.0.0.1');
  if (process.env.UPDATE === '1') writeFileSync(PICTURE, drawSession(session, TITLE));
  const picture = readFileSync(PICTURE, 'utf8');
  t.equal(readSession(picture), shown.replaceAll(/\n+/g, '\n'), 'UPDATE=1 writes the picture');
  t.ok(picture.length < 60_000, `${picture.length} bytes`);
  const readme = readFileSync(join(projectRoot, 'README.md'), 'utf8');
  t.match(readme, '](docs/pictures/terminal.svg)');
});

/** A log of 2,000 logins: most people log in once, and one address guesses. */
function yesterday(): string {
  const lines = Array.from({ length: 2000 }, (_, i) => {
    const address = i % 200 === 0 ? '203.0.113.5' : `198.51.${Math.floor(i / 250)}.${i % 250}`;
    const second = String(i % 60).padStart(2, '0');
    const minute = String(Math.floor(i / 60)).padStart(2, '0');
    return `${address} - - [26/Nov/2026:08:${minute}:${second} +0000] "POST /login HTTP/1.1" 200 17 "-" "Firefox"`;
  });
  return `${lines.join('\n')}\n`;
}
