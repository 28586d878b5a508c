/** Plans from a claim of signed tokens, on running gateways. */
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { loadTestedPolicies } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY } from '#test/support/gateway.ts';
import { onEachStore } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';
import { insideLongWindow } from '#test/support/window.ts';

const signer = await newSigner('EdDSA', 'key');
const forger = await newSigner('EdDSA', 'key');

/** The token of a user, with further claims. */
const token = (sub: string, claims: object = {}, by = signer) => sign(by, { sub, ...claims });

/** @returns the name of a policy file, with its key set beside it */
function written(t: Test, more = ''): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'keys.json'), keySetText(signer));
  writeFileSync(join(folder, 'plans.txt'), '192.0.2.0/24 silver\n');
  writeFileSync(
    join(folder, 'policies.yaml'),
    `version: 1
plan: { header: x-plan, claim: plan }
plans: { file: plans.txt }
identifiers:
  ip: { source: client-address }
  user: { source: [{ jwt: { bearer: true, claim: sub, jwks: keys.json } }] }
  device: { source: [{ jwt: { header: x-device, claim: sub, jwks: keys.json } }] }
policies:
  - name: users
    route: GET /users
    identifier: user
    limit: 2
    window: 366d
    overrides: [{ for: { plan: gold }, limit: 5 }, { for: { plan: silver }, limit: 3 }]
  - name: addresses
    route: GET /addresses
    identifier: ip
    limit: 2
    window: 366d
    overrides: [{ for: { plan: gold }, limit: 5 }, { for: { plan: silver }, limit: 3 }]
${more}`,
  );
  return join(folder, 'policies.yaml');
}

t.test('the plan of a valid token chooses the limit', async (t) => {
  await insideLongWindow();
  const env = { ...BEHIND_PROXY, GATEWAY_POLICIES: written(t) };
  await onEachStore(t, { env }, async (t, one, two) => {
    const ask = (path: string, headers: Record<string, string>, i = 0) =>
      send((i % 2 === 0 ? one : two).port, path, { headers });
    const passed = async (path: string, headers: Record<string, string>): Promise<number> => {
      let count = 0;
      for (let i = 0; i < 7; i++) if ((await ask(path, headers, i)).status === 200) count++;
      return count;
    };
    const from = (address: string) => ({ 'x-forwarded-for': address });
    const signed = async (...of: Parameters<typeof token>) => ({
      authorization: `Bearer ${await token(...of)}`,
    });

    const gold = await signed('ada', { plan: 'gold' });
    t.equal(await passed('/users', { ...from('10.0.0.1'), ...gold }), 5);
    const denied = await ask('/users', { ...from('10.0.0.1'), ...gold });
    t.equal(denied.headers['x-ratelimit-limit'], '5');
    t.equal(await passed('/users', { ...from('10.0.0.1'), ...(await signed('bob')) }), 2, 'no claim');

    const named = await signed('carl', { plan: 'gold' });
    t.equal(
      await passed('/users', { ...from('192.0.2.1'), ...named, 'x-plan': 'silver' }),
      3,
      'the header of a trusted proxy goes before the claim',
    );
    t.equal(await passed('/users', { ...from('192.0.2.1'), ...named }), 2, 'the claim before the file');
    const unnamed = await signed('dora');
    t.equal(await passed('/users', { ...from('192.0.2.1'), ...unnamed }), 3, 'the file after both');

    for (const plan of [7, true, ['gold'], { gold: 1 }, '', 'gold ', 'gold plan', 'g'.repeat(65), 'unknown'])
      t.equal(
        await passed('/users', {
          ...from('10.0.0.1'),
          ...(await signed(`user ${JSON.stringify(plan)}`, { plan })),
        }),
        2,
        `${JSON.stringify(plan)} is no plan of the file`,
      );
  });
});

t.test('only tokens that verify name plans, and they have to agree', async (t) => {
  await insideLongWindow();
  await onEachStore(t, { env: { GATEWAY_POLICIES: written(t) } }, async (t, { port }) => {
    // One connection, so that each request could be taken for its predecessor.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const ask = (headers: Record<string, string>) => send(port, '/addresses', { agent, headers });
    const limit = async (headers: Record<string, string>) =>
      (await ask(headers)).headers['x-ratelimit-limit'];
    const gold = await token('ada', { plan: 'gold' });
    const silver = await token('ada', { plan: 'silver' });

    t.equal(await limit({}), '2');
    t.equal(await limit({ authorization: `Bearer ${gold}` }), '5', 'also if the policy counts addresses');
    t.equal(await limit({}), '2', 'the next request of the connection has no plan');
    t.equal(await limit({ 'x-device': gold }), '5');
    t.equal(await limit({ authorization: `Bearer ${await token('ada', { plan: 'gold' }, forger)}` }), '2');
    t.equal(await limit({ authorization: `Bearer ${await token('ada', { plan: 'gold', exp: 1 })}` }), '2');
    t.equal(await limit({ 'x-plan': 'gold' }), '2', 'a client cannot write the header of the proxy');
    t.equal(await limit({ authorization: `Bearer ${gold}`, 'x-device': gold }), '5');
    t.equal(
      await limit({ authorization: `Bearer ${gold}`, 'x-device': await token('dev') }),
      '5',
      'a token without a plan says nothing',
    );
    const two = await ask({ authorization: `Bearer ${gold}`, 'x-device': silver });
    t.match([two.status, two.body.toString()], [400, /two different plans/]);
    const twice = await send(port, '/addresses', {
      headers: ['host', 'a', 'x-device', gold, 'x-device', silver],
    });
    t.match([twice.status, twice.body.toString()], [400, /two different API keys/]);
  });
});

t.test('tests of the file present tokens', async (t) => {
  const entry = (bearer: string, allowed: number): string =>
    `  - { name: of ${allowed}, request: GET /users, from: 10.0.0.1, headers: { authorization: "Bearer ${bearer}" }, times: 9, expect: { allowed: ${allowed} } }\n`;
  const gold = await token('ada', { plan: 'gold' });
  const load = async (allowed: number) => {
    const file = written(t, `tests:\n${entry(gold, allowed)}${entry(await token('bob'), 2)}`);
    return loadTestedPolicies(readFileSync(file, 'utf8'), file);
  };
  t.equal((await load(5)).planClaim, 'plan');
  await t.rejects(load(4), /test "of 4" fails: allowed: expected 4, got 5/);
});
