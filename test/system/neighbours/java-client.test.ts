/**
 * java.net.http of Java 17. Its first request offers HTTP/2 by `Upgrade: h2c`. In older releases its WebSocket handshake
 * has `Content-Length: 0`, also behind the proxies that people put in front.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { apacheCommand } from '#test/support/apache.ts';
import {
  clientFile,
  REPORTS,
  reportsOf,
  reportsWithout,
  startDemo,
  takeSteps,
} from '#test/support/clients/demo.ts';
import { outputOf } from '#test/support/neighbour.ts';
import { freePort } from '#test/support/ports.ts';
import { nginxCommand, startProxyProcess } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const [demo] = await Promise.all([
  startDemo(t),
  outputOf(['javac', '-d', folder, clientFile('Client.java')], { cwd: folder }),
]);
const client = (...args: readonly string[]): Promise<unknown> =>
  reportsOf(['java', '-cp', folder, ...args], folder);
/** The client as it is, and as older releases send its handshake. */
const RELEASES = {
  'this release': [],
  'Content-Length: 0': ['-Djdk.httpclient.allowRestrictedHeaders=content-length'],
} as const;

t.test('HttpClient and WebSocket', async (t) => {
  await takeSteps(t, demo, reportsWithout(['gzip', 'keep-alive']), (origin) => client('Client', origin));
});

async function echoes(t: Test, origin: string): Promise<void> {
  const { websocket } = REPORTS;
  for (const [release, options] of Object.entries(RELEASES))
    t.strictSame(await client(...options, 'Client', origin, 'websocket'), { websocket }, release);
}

t.test('WebSocket', async (t) => {
  for (const { origin } of demo.ways) await echoes(t, origin);
});

/** Writes the file of a proxy in front of the gateway. @returns its command */
const PROXIES: Readonly<Record<string, (folder: string, port: number, to: number) => readonly string[]>> = {
  NGINX: (folder, port, to) =>
    nginxCommand(
      folder,
      `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${to}; proxy_http_version 1.1;
proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; proxy_set_header Host $http_host; } }`,
    ),
  HAProxy: (folder, port, to) => {
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(
      file,
      `defaults
  mode http
  timeout client 1h
  timeout server 1h
  timeout connect 1m
  timeout tunnel 1h
listen front
  bind 127.0.0.1:${port}
  server gateway 127.0.0.1:${to}
`,
    );
    return ['haproxy', '-db', '-f', file];
  },
  Apache: (folder, port, to) => {
    mkdirSync(join(folder, 'site'));
    const modules = ['proxy', 'proxy_http'];
    return apacheCommand(folder, port, modules, `ProxyPass / http://127.0.0.1:${to}/ upgrade=websocket`);
  },
};

for (const [name, command] of Object.entries(PROXIES))
  t.test(`WebSocket with ${name} in front`, async (t) => {
    const folder = temporaryFolder(t);
    const port = await freePort();
    await startProxyProcess(t, command(folder, port, demo.gateway.port), port, folder);
    await echoes(t, `http://127.0.0.1:${port}`);
  });
