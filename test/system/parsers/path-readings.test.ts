/**
 * Real servers say which path they read, of odd paths that came through a gateway. Each policy that covers what they
 * read has to count the request.
 */
import { createServer } from 'node:http';
import { join } from 'node:path';
import express from 'express';
import t, { type Test } from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { oddPaths } from '#test/support/odd-paths.ts';
import { accepts, freePort } from '#test/support/ports.ts';
import { startProgram } from '#test/support/process.ts';
import { rounds } from '#test/support/seed.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

/** A server that answers with the paths that its programs may take for the path of the request, one a line. */
interface Server {
  readonly name: string;
  readonly port: number;
  /** Whether a segment is still percent-encoded. */
  readonly isEncoded?: boolean;
}

const fileOf = (name: string): string => join(import.meta.dirname, name);

const TOMCAT = '/usr/share/tomcat10/lib/*:/usr/share/java/tomcat10-juli.jar';

async function startExpress(t: Test): Promise<Server[]> {
  const app = express();
  app.get('/', (_, res) => void res.send('/'));
  app.get('/*path', (req, res) => {
    const segments: unknown = req.params.path;
    // A slash inside a segment is no boundary.
    const encoded = (Array.isArray(segments) ? segments : []).map((segment) => encodeURIComponent(segment));
    res.type('application/octet-stream').send(`/${encoded.join('/')}`);
  });
  return [{ name: 'Express', port: await listen(t, createServer(app)), isEncoded: true }];
}

/** Many programs read the path so, as the pages of Node.js show it. */
async function startNode(t: Test): Promise<Server[]> {
  const server = createServer((req, res) => {
    const url = URL.parse(req.url ?? '', 'http://localhost');
    res.statusCode = url === null ? 400 : 200;
    res.end(url?.pathname);
  });
  return [{ name: 'Node', port: await listen(t, server), isEncoded: true }];
}

async function start(
  t: Test,
  names: readonly string[],
  command: (folder: string, ports: readonly number[]) => readonly string[],
): Promise<Server[]> {
  const folder = temporaryFolder(t);
  const ports = await Promise.all(names.map(() => freePort()));
  const program = startProgram(command(folder, ports), { HOME: folder, LC_ALL: 'C.UTF-8' }, folder);
  t.teardown(() => program.stop());
  for (const port of ports) await until(() => accepts(port), `${names[0]} accepts connections`, program);
  return names.map((name, i) => ({ name, port: ports[i] ?? 0 }));
}

const SERVERS: Readonly<Record<string, (t: Test) => Promise<readonly Server[]>>> = {
  Express: startExpress,
  Node: startNode,
  Rack: (t) =>
    start(t, ['Rack'], (_, [port]) => ['puma', '-b', `tcp://127.0.0.1:${port}`, fileOf('paths.ru')]),
  PHP: (t) => start(t, ['PHP'], (_, [port]) => ['php', '-S', `127.0.0.1:${port}`, fileOf('paths.php')]),
  Python: (t) => start(t, ['Python'], (_, [port]) => ['/usr/bin/python3', fileOf('paths.py'), String(port)]),
  Tomcat: async (t) => {
    const names = ['Tomcat', 'Tomcat, decoding slashes', 'Tomcat, passing slashes through'];
    const servers = await start(t, names, (folder, ports) => [
      ...['java', '-cp', TOMCAT, fileOf('PathReader.java'), folder],
      ...ports.map(String),
    ]);
    return servers.map((server, i) => ({ ...server, isEncoded: i === 2 }));
  },
};

/** Returns the route of a path that a server has read; of one with a segment that routes cannot have, of all before it. */
function routeOf(path: string, isEncoded: boolean): string {
  const parts: string[] = [];
  const segments = path
    .replace(/(?<=.)\/$/, '')
    .slice(1)
    .split('/');
  if (segments.length === 1 && segments[0] === '') return '/';
  for (const segment of segments) {
    const text = isEncoded ? decodeURIComponent(segment) : segment;
    if (text === '' || text === '.' || text === '..') return `/${[...parts, '*'].join('/')}`;
    parts.push(
      encodeURIComponent(text).replaceAll(/[*!'()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`),
    );
  }
  return `/${parts.join('/')}`;
}

interface Read {
  readonly server: string;
  readonly sent: string;
  readonly route: string;
}

/** Asks a server through a gateway. A path that either of them refuses was read by nobody. */
async function readBy(
  t: Test,
  { name, port, isEncoded = false }: Server,
  paths: readonly string[],
): Promise<Read[]> {
  const gateway = await startTestGateway(t, {
    upstream: `http://127.0.0.1:${port}`,
    policies: policyFile('name: all, route: "* *", identifier: ip, limit: 1000000, window: 1h'),
  });
  const read: Read[] = [];
  for (const sent of paths) {
    const { status, body } = await send(gateway.port, sent);
    if (status !== 200) continue;
    for (const path of new Set(body.toString('latin1').split('\n')))
      read.push({ server: name, sent, route: routeOf(path, isEncoded) });
  }
  return read;
}

/** Maximum number of policies of one file. */
const POLICIES_MAX = 250;

for (const [name, startServers] of Object.entries(SERVERS))
  t.test(`each policy that covers what ${name} reads counts the request`, async (t) => {
    const paths = [...new Set(oddPaths(rounds(2000)))];
    for (const server of await startServers(t)) {
      const read = await readBy(t, server, paths);
      const routes = [...new Set(read.map(({ route }) => route))];
      const uncounted: Read[] = [];
      for (let from = 0; from < routes.length; from += POLICIES_MAX) {
        const some = routes.slice(from, from + POLICIES_MAX);
        const row = (route: string, i: number): string =>
          `name: p${i}, route: "GET ${route}", identifier: ip, limit: 1, window: 1m`;
        const match = createMatcher(loadPolicies(policyFile(...some.map(row)), 'p.yaml'));
        for (const one of read) {
          const at = some.indexOf(one.route);
          if (at < 0) continue;
          const found = match('GET', one.sent);
          const names = found.ok ? (found.cover?.policies ?? []).map(({ name }) => name) : [];
          if (!names.includes(`p${at}`)) uncounted.push(one);
        }
      }
      t.strictSame(uncounted.slice(0, 10), [], server.name);
      t.ok(read.length > paths.length / 4, `${server.name} has read ${read.length} of ${paths.length} paths`);
      t.ok(routes.length > 50, `${server.name}: ${routes.length} different paths`);
    }
  });
