/** Applications that send 103 Early Hints before their reply, and clients that read them. */
import { once } from 'node:events';
import { Agent, type InformationEvent, request } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { copyProgram, outputOf, runProgram, startNeighbour, type Way } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LINK = '</style.css>; rel=preload; as=style';

/** Interim replies by application, and how it is started in a folder. */
const APPLICATIONS = {
  puma: {
    statuses: [103],
    start: async (folder: string) => {
      copyProgram('early-hints.ru', join(folder, 'config.ru'));
      return (port: number) => ['puma', '--early-hints', '-b', `tcp://127.0.0.1:${port}`, 'config.ru'];
    },
  },
  go: {
    statuses: [103, 102],
    start: async (folder: string) => {
      copyProgram('early-hints.go', join(folder, 'main.go'));
      const env = { HOME: folder, GOCACHE: join(folder, 'cache'), CGO_ENABLED: '0', GOFLAGS: '-mod=mod' };
      await outputOf(['go', 'build', '-o', 'app', 'main.go'], { cwd: folder, env });
      return (port: number) => [join(folder, 'app'), String(port)];
    },
  },
  node: {
    statuses: [102, 103],
    start: async (folder: string) => {
      copyProgram('early-hints.cjs', join(folder, 'app.cjs'));
      return (port: number) => [process.execPath, 'app.cjs', String(port)];
    },
  },
};

/** One reply, interim or final. */
type Seen = readonly [status: number, link: string | undefined, isFinal: boolean];

async function byCurl({ origin }: Way, ...options: readonly string[]): Promise<[readonly Seen[], string]> {
  const { stdout } = await runProgram(['curl', '-sS', '-i', ...options, `${origin}/`]);
  const parts = stdout.split('\r\n\r\n');
  const body = parts.pop() ?? '';
  const fieldOf = (head: string, name: string): string | undefined =>
    new RegExp(`^${name}: (.*)\r?$`, 'im').exec(head)?.[1];
  return [
    parts.map((head) => [Number(head.split(' ')[1]), fieldOf(head, 'link'), /^x-final: yes/im.test(head)]),
    body,
  ];
}

async function byNode({ port }: Way): Promise<[readonly Seen[], string]> {
  const seen: Seen[] = [];
  const req = request({ port, host: '127.0.0.1', agent: new Agent() }).end();
  req.on('information', ({ statusCode, headers }: InformationEvent) => {
    seen.push([statusCode, headers.link as string | undefined, headers['x-final'] === 'yes']);
  });
  const [res] = await once(req, 'response');
  seen.push([res.statusCode, res.headers.link, res.headers['x-final'] === 'yes']);
  let body = '';
  for await (const piece of res.setEncoding('latin1')) body += piece;
  return [seen, body];
}

for (const [name, { statuses, start }] of Object.entries(APPLICATIONS)) {
  t.test(name, async (t) => {
    const folder = temporaryFolder(t);
    const neighbour = await startNeighbour(t, { cwd: folder, command: await start(folder) });
    const hints = statuses.map(
      (status): Seen => [status, name === 'go' || status === 103 ? LINK : undefined, false],
    );
    const expected = [[...hints, [200, undefined, true]], name];
    t.strictSame(await neighbour.same(t, 'curl', (way) => byCurl(way)), expected);
    t.strictSame(await neighbour.same(t, 'Node', byNode), expected);
    const [, gateway] = neighbour.ways;
    t.strictSame(await byCurl(gateway, '--http1.0'), [[[200, undefined, true]], name], 'not to HTTP/1.0');
  });
}
