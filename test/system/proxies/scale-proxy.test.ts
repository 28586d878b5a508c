/** The proxy of the Compose profile "scale", for real: its own file, with addresses of this machine in place of names. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { startHaproxy } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const file = join(projectRoot, 'config/scale/haproxy.cfg');

interface Upstream {
  readonly server: Server;
  readonly port: number;
}

/** Answers with its name and what it was sent; `/health` with 200 unless it is ill. */
async function startUpstream(t: Test, name: string, isWell = (): boolean => true): Promise<Upstream> {
  const server = createServer((req, res) => {
    if (req.url === '/health') res.writeHead(isWell() ? 200 : 503).end();
    else res.end(JSON.stringify({ name, headers: req.headers }));
  });
  const port = await listen(t, server);
  return { server, port };
}

async function get(port: number, headers: Record<string, string> = {}) {
  const sent = request({ port, host: '127.0.0.1', path: '/', headers, agent: false }).end();
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  const body = await text(reply);
  return {
    status: reply.statusCode,
    json: reply.statusCode === 200 && body !== '' ? JSON.parse(body) : null,
  };
}

async function startProxy(t: Test, servers: Readonly<Record<'gateway' | 'api' | 's3', readonly Upstream[]>>) {
  const ports = { public: await freePort(), apis: await freePort(), health: await freePort() };
  const listed = (backend: 'gateway' | 'api' | 's3'): string =>
    servers[backend].map(({ port }, at) => `    server ${backend}${at} 127.0.0.1:${port}`).join('\n');
  const config = readFileSync(file, 'utf8')
    .replace(/^resolvers.*?\n\n/ms, '')
    .replace('maxconn 20000', 'maxconn 200')
    // The servers are in this process, which may be busy for longer than a second.
    .replace('timeout connect 3s', 'timeout connect 3s\n    timeout check 60s')
    .replaceAll(/ init-addr none resolvers containers$/gm, '')
    .replace(/^ {4}server-template gateway .*$/m, listed('gateway'))
    .replace(/^ {4}server-template api .*$/m, listed('api'))
    .replace(/^ {4}server s3 .*$/m, listed('s3'))
    .replace('bind :8080', `bind 127.0.0.1:${ports.public}`)
    .replace('bind :3000', `bind 127.0.0.1:${ports.apis}`)
    .replace('bind 127.0.0.1:8404', `bind 127.0.0.1:${ports.health}`);
  const path = join(temporaryFolder(t), 'haproxy.cfg');
  writeFileSync(path, config);
  const { child } = await startHaproxy(t, path, ports.health);
  return { child, ports, ready: () => ready(ports.health) };
}

async function ready(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
}

t.test('HAProxy accepts the file', async (t) => {
  const child = spawn('haproxy', ['-c', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  t.equal(code, 0, said);
  t.notMatch(said, 'WARNING');
});

t.test('one port for all gateways, one for the APIs; files by their host', async (t) => {
  let isWell = true;
  const gateways = [await startUpstream(t, 'g1'), await startUpstream(t, 'g2')];
  const apis = [await startUpstream(t, 'a1', () => isWell), await startUpstream(t, 'a2')];
  const { ports, ready } = await startProxy(t, {
    gateway: gateways,
    api: apis,
    s3: [await startUpstream(t, 's3')],
  });

  const forged = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'https',
    forwarded: 'for=203.0.113.9',
    'x-real-ip': '203.0.113.9',
  };
  const { json } = await get(ports.public, forged);
  t.match(json.name, /^g[12]$/);
  t.equal(json.headers['x-forwarded-for'], '127.0.0.1', 'the client’s own address is ignored');
  for (const name of ['x-forwarded-proto', 'forwarded', 'x-real-ip']) t.notOk(name in json.headers, name);

  const files = await get(ports.public, { host: 'files.localhost:8080' });
  t.equal(files.json.name, 's3');
  t.equal(files.json.headers.host, 'files.localhost:8080', 'signatures need this host');

  const inner = await get(ports.apis, { 'x-forwarded-for': '198.51.100.7, 127.0.0.1' });
  t.match(inner.json.name, /^a[12]$/);
  t.equal(inner.json.headers['x-forwarded-for'], '198.51.100.7, 127.0.0.1', 'no address is added');

  isWell = false;
  await until(async () => {
    const names = new Set<string>();
    for (let i = 0; i < 6; i++) names.add((await get(ports.apis)).json.name);
    return !names.has('a1');
  });
  t.pass('an unhealthy API gets no requests');

  // Connections are refused at once; the proxy has not noticed yet.
  gateways[0]?.server.closeAllConnections();
  gateways[0]?.server.close();
  for (let i = 0; i < 20; i++) t.equal((await get(ports.public)).json?.name, 'g2', 'no request is lost');
  t.ok(await ready());
  gateways[1]?.server.closeAllConnections();
  gateways[1]?.server.close();
  await until(async () => !(await ready()));
  t.equal((await get(ports.public)).status, 503);
});
