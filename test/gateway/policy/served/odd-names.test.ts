/** Clients that spell a name so that Express reads it, and a gateway that compared names exactly would not. */
import express, { type Response } from 'express';
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = policyFile(
  'name: logins, route: "POST /login", identifier: { body: email }, limit: 3, window: 366d',
  'name: strict, route: "POST /strict", identifier: { body: email, required: true }, limit: 3, window: 366d',
  'name: keys, route: "GET /keys", identifier: query-key, limit: 3, window: 366d',
).replace('exclude:', '  query-key: { source: [{ query: api_key }] }\nexclude:');

const KEY = { name: 'query-key', kind: 'credential', sources: [] } as const;

/** Tells in a reply what the application has read; an empty list for nothing. */
function tell(res: Response, value: unknown): void {
  res.json([value].flat().filter((one) => one !== undefined));
}

const app = express().set('query parser', 'extended');
app.post(/./, express.urlencoded({ extended: true }), express.json(), (req, res) =>
  tell(res, req.body?.email),
);
app.get(/./, (req, res) => tell(res, req.query.api_key));

t.test('no spelling of a name passes a limit', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, app);
  const env = BEHIND_PROXY;
  const { port, gateway } = await startTestGateway(t, { upstream, policies: FILE, env });
  let sent = 0;
  /** Returns what the application has read in all replies. */
  const readOf = async (path: string, body?: string, type = 'application/x-www-form-urlencoded') => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => {
        const i = sent++;
        const fresh = (text: string): string => text.replaceAll('JUNK', `junk${i}`);
        // Keys that never worked share a limit with their address.
        const headers = { 'content-type': type, 'x-forwarded-for': `192.0.${i >> 8}.${i & 255}` };
        return send(port, fresh(path), {
          method: body === undefined ? 'GET' : 'POST',
          headers,
          body: fresh(body ?? ''),
        });
      }),
    );
    for (const { status } of answers) t.ok([200, 400, 429].includes(status), `${status}`);
    return answers.flatMap(({ status, body }) =>
      status === 200 ? (JSON.parse(body.toString()) as unknown[]) : [],
    );
  };
  const odd = [
    '[email]=V',
    '%5Bemail%5D=V',
    'email[]=V',
    '[email]x=V',
    '[email][]=V',
    '[email]x;y=V',
    '\ufeffemail=V',
  ];
  for (const path of ['/login', '/strict']) {
    for (const text of odd) {
      for (const body of [`${text}&+email=JUNK`, `${text}&email%00=JUNK`, `${text}&email=JUNK`, text])
        t.notOk((await readOf(path, body)).includes('V'), `${path} ${body}`);
    }
    for (const parameters of [
      ...[
        "charset*=utf-8''utf-7",
        '\xa0charset=utf-7',
        'xcharset=ISO-2022-JP',
        'charset=utf-8; charset=utf-7',
      ],
    ])
      t.strictSame(await readOf(path, '{"email":"V"}', `application/json; ${parameters}`), [], parameters);
  }
  t.strictSame(await readOf('/strict?email=JUNK', 'email=V', 'text/plain'), [], 'the query is not enough');

  t.equal((await readOf('/login', 'email=JUNK')).length, 20, 'other accounts are not limited');
  t.equal((await readOf('/keys?api_key=JUNK')).length, 20, 'nor are other keys');

  const spellings = [
    '[api_key]=K',
    '%5Bapi_key%5d=K',
    'api_key[]=K',
    '[api_key]x=K',
    '[api_key]x;y=K',
    '[api_key]x=y]=K',
  ];
  for (const [i, spelling] of spellings.entries()) {
    const key = `K${i}`;
    const own = spelling.replace(/K$/, key);
    const read = [
      ...(await readOf(`/keys?${own}`)),
      ...(await readOf(`/keys?${own}&api_key%00=JUNK`)),
      ...(await readOf(`/keys?${own};+api_key=JUNK`)),
    ];
    t.ok(read.filter((one) => one === key).length <= 3, `${spelling}: ${read}`);
    await gateway.control.ban(new Digester('salt of the tests').identify(KEY, key), 600_000, 'why');
    t.notOk((await readOf(`/elsewhere?${own}`)).includes(key), `${spelling} passes no ban`);
  }
});
