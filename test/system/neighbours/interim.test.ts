/** Applications that send 103 Early Hints before their reply, and clients that read them. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, type InformationEvent, request } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { runProgram, startNeighbour, type Way } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LINK = '</style.css>; rel=preload; as=style';

const RACK = `run lambda { |env|
  env['rack.early_hints'].call('Link' => '${LINK}')
  [200, { 'Content-Type' => 'text/plain', 'X-Final' => 'yes' }, ['puma']]
}
`;

const GO = `package main

import ("io"; "net/http"; "os")

func main() {
	http.ListenAndServe("127.0.0.1:" + os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "${LINK}")
		w.WriteHeader(103)
		w.WriteHeader(102)
		w.Header().Del("Link")
		w.Header().Set("X-Final", "yes")
		io.WriteString(w, "go")
	}))
}
`;

const NODE = `const { createServer } = require('node:http');
createServer((req, res) => {
  res.writeProcessing();
  res.writeEarlyHints({ link: '${LINK}' });
  res.setHeader('X-Final', 'yes');
  res.end('node');
}).listen(process.argv[2], '127.0.0.1');
`;

interface Application {
  readonly name: string;
  readonly statuses: readonly number[];
  /** Writes the program into the folder. @returns its command */
  build(folder: string): Promise<(port: number) => readonly string[]>;
}

const APPLICATIONS: readonly Application[] = [
  {
    name: 'puma',
    statuses: [103],
    async build(folder) {
      const file = join(folder, 'config.ru');
      writeFileSync(file, RACK);
      return (port) => ['puma', '--early-hints', '-b', `tcp://127.0.0.1:${port}`, file];
    },
  },
  {
    name: 'go',
    statuses: [103, 102],
    async build(folder) {
      writeFileSync(join(folder, 'main.go'), GO);
      const env = { HOME: folder, GOCACHE: join(folder, 'cache'), CGO_ENABLED: '0', GOFLAGS: '-mod=mod' };
      const { code, stderr } = await runProgram(['go', 'build', '-o', 'app', 'main.go'], {
        cwd: folder,
        env,
      });
      if (code !== 0) throw new Error(stderr);
      return (port) => [join(folder, 'app'), String(port)];
    },
  },
  {
    name: 'node',
    statuses: [102, 103],
    async build(folder) {
      const file = join(folder, 'app.cjs');
      writeFileSync(file, NODE);
      return (port) => [process.execPath, file, String(port)];
    },
  },
];

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

for (const { name, statuses, build } of APPLICATIONS) {
  t.test(name, async (t) => {
    const folder = temporaryFolder(t);
    const neighbour = await startNeighbour(t, { cwd: folder, command: await build(folder) });
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
