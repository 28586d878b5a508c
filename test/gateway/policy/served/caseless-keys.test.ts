/** Keys of an application that finds them without regard to case. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { insideLongWindow } from '#test/support/window.ts';

const ROW = 'name: items, route: "GET /items", identifier: api-key, limit: 3, window: 366d';

t.test('with ignoreCase, all spellings of a key have one limit and one ban', async (t) => {
  await insideLongWindow();
  for (const ignoresCase of [false, true]) {
    const policies = policyFile(ROW).replace(
      '{ bearer: fbk_ }]',
      `{ bearer: fbk_ }]${ignoresCase ? ', ignoreCase: true' : ''}`,
    );
    const { port, gateway } = await startTestGateway(t, { policies, env: BEHIND_PROXY });
    let sent = 0;
    const ask = async (headers: Record<string, string>): Promise<number> => {
      const from = { 'x-forwarded-for': `192.0.2.${sent++}` };
      return (await send(port, '/items', { headers: { ...from, ...headers } })).status;
    };
    const spellings = ['fbk_abcd', 'FBK_ABCD', 'Fbk_Abcd', 'fbk_aBcD', 'fbk_ABCD', 'FBK_abcd', 'fbk_abcD'];
    const statuses: number[] = [];
    for (const [i, key] of spellings.entries())
      statuses.push(await ask(i % 2 === 0 ? { 'x-api-key': key } : { authorization: `Bearer ${key}` }));
    const admitted = statuses.filter((status) => status === 200).length;
    t.equal(admitted, ignoresCase ? 3 : spellings.length, `ignoreCase: ${ignoresCase}`);
    t.equal(await ask({ 'x-api-key': 'fbk_other' }), 200, 'another key has its own limit');
    if (!ignoresCase) continue;
    const identifier = { name: 'api-key', kind: 'credential', sources: [], ignoresCase: true } as const;
    await gateway.control.ban(
      new Digester('salt of the tests').identify(identifier, 'FBK_OTHER'),
      600_000,
      'why',
    );
    t.equal(await ask({ 'x-api-key': 'fbk_Other' }), 429, 'a ban is of all spellings');
  }
});
