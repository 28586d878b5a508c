/** Holds the exchanges of this folder, on both ways into the gateway: its own parser, and node:http. */
import { globSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { reportWhileWaiting, until } from '#test/support/until.ts';
import { bytesOf, type Case, combinations, Expectation, readExchanges, type Step } from './document.ts';

const FOLDER = import.meta.dirname;

/** Whether a request has arrived with its body. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const head = text.slice(0, end);
  if (/^transfer-encoding: chunked$/im.test(head)) return text.endsWith('\r\n0\r\n\r\n');
  return text.length - end - 4 >= Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
}

async function run(t: Test, file: string, one: Case, env: Readonly<Record<string, string>>): Promise<void> {
  let step: Step | undefined;
  let seen = '';
  let fill = (text: string): string => text;
  /** Number of bytes of each connection that belong to requests that were answered. */
  const answered = new WeakMap<Socket, number>();
  const upstream = await startRawUpstream(t, (socket, text) => {
    const request = text.slice(answered.get(socket) ?? 0);
    if (step === undefined || !isWhole(request)) return;
    seen += request;
    answered.set(socket, text.length);
    socket.write(bytesOf(fill(step.answer)), 'latin1');
    if (step.closes) socket.end();
  });
  const policies = one.policies ?? policyFile();
  const { port } = await startTestGateway(t, { upstream, policies, env: { ...one.env, ...env } });
  const ports = [
    ['gateway', String(port)],
    ['application', String(upstream.port)],
  ] as const;
  for (const names of combinations(one.values)) {
    const all = new Map([...ports, ...names]);
    fill = (text) => text.replace(/\$(\w+)/g, (whole, name: string) => all.get(name) ?? whole);
    let client: RawConnection | null = null;
    let read = 0;
    for (step of one.steps) {
      const { line, sent, isSameConnection } = step;
      const told = `${one.title} (${basename(file)}:${line}) ${[...names.values()].join(', ')}`;
      seen = '';
      if (client !== null && isSameConnection) {
        read = client.received().length;
        client.socket.write(bytesOf(fill(sent)), 'latin1');
      } else {
        client?.socket.destroy();
        read = 0;
        client = sendRaw(port, bytesOf(fill(sent)));
      }
      const connection = client;
      const received = (): string => connection.received().slice(read);
      const checks = [
        [step.received, received],
        [step.seen, () => seen],
      ] as const;
      for (const [wanted, got] of checks) {
        if (wanted === null) continue;
        const expected = new Expectation(fill(wanted));
        const stopReports = reportWhileWaiting(() => `for ${told}, with ${JSON.stringify(got())}`, 5000);
        await until(() => expected.fits(got()) || connection.socket.closed, told);
        stopReports();
        t.ok(expected.fits(got()), told, { got: got() });
      }
    }
    client?.socket.destroy();
  }
}

for (const file of globSync('*.md', { cwd: FOLDER }).sort())
  for (const [way, GATEWAY_OWN_PARSER] of [
    ['own parser', '1'],
    ['node:http', '0'],
  ] as const)
    t.test(`${basename(file, '.md')}, ${way}`, async (t) => {
      for (const one of readExchanges(readFileSync(join(FOLDER, file), 'utf8')))
        await t.test(one.title, (t) => run(t, file, one, { GATEWAY_OWN_PARSER }));
    });
