/** The text of 429 replies, with a clock that only the test moves. Their framing: exchanges/limits.md. */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const PATHS = { plain: '/api/v1/management/me', client: '/api/v1/client/w/environment' } as const;

const MINUTE = 1_800_000_000_000;

const dated = /\r\nDate: (\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)\r\n/;

t.test(
  'all requests of a second share one text, the next second and client routes have others',
  async (t) => {
    const at = { now: MINUTE };
    const { origin, port } = await startTestGateway(t, {
      clock: () => at.now,
      wallClock: () => at.now,
      policies: policyFile(
        `name: plain, route: GET ${PATHS.plain}, identifier: ip, limit: 1, window: 1m`,
        `name: client, route: GET ${PATHS.client}, identifier: ip, limit: 1, window: 1h`,
      ),
    });
    for (const path of Object.values(PATHS)) await (await fetch(origin + path)).text();
    const dates: string[] = [];
    const ask = async (path: string): Promise<string> => {
      const { socket, until } = sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const text = await until(/\}$/);
      socket.destroy();
      dates.push(dated.exec(text)?.[1] ?? '');
      t.equal(text.match(/^Date:/gm)?.length, 1);
      const id = /\r\nx-gateway-decision: ([0-9a-z]{26})\r\n/.exec(text)?.[1] ?? '-';
      t.ok(text.endsWith(`"decision":"${id}"}`), 'header and body have the same id');
      return text.replace(dated, '\r\n').replaceAll(id, '-'.repeat(id.length));
    };
    const first = await ask(PATHS.plain);
    t.equal(dates.at(-1), 'Fri, 15 Jan 2027 08:00:00 GMT');
    t.match(first, /^HTTP\/1\.1 429 Too Many Requests\r\n/);
    t.match(first, /\r\nRetry-After: 60\r\n/);
    t.match(first, /\r\nConnection: keep-alive\r\n/);
    t.notMatch(first, /Access-Control/);
    at.now += 400;
    t.equal(await ask(PATHS.plain), first, 'the rest is still rounded up to sixty seconds');
    at.now += 1000;
    t.match(await ask(PATHS.plain), /\r\nRetry-After: 59\r\n/);
    t.equal(dates.at(-1), 'Fri, 15 Jan 2027 08:00:01 GMT', 'the date of the reset moves');
    const client = await ask(PATHS.client);
    t.match(client, /\r\nAccess-Control-Allow-Origin: \*\r\n/);
    t.match(client, /"violated-policies":\["client"\]/);
    const length = Number(/Content-Length: (\d+)/.exec(client)?.[1]);
    t.equal(client.split('\r\n\r\n')[1]?.length, length);
  },
);
