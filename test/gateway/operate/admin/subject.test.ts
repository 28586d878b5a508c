/** Tests that operators name the client that the gateway counts, and that a mistyped one is never taken for a key. */
import { join } from 'node:path';
import t from 'tap';
import { kindOf, namedBy } from '#gateway/operate/admin/subject.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { identitiesOf } from '#gateway/request/reading/listing.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const POLICIES = policyFile('name: keys, route: GET /keys/*, identifier: api-key, limit: 9, window: 366d');
const KEYS = ['clé', 'ключ', 'à', '鍵 '];

t.test('a ban of a key with letters beyond ASCII holds for clients that send UTF-8', async (t) => {
  const { origin } = await startUpstream(t);
  const { gateway, port } = await startTestGateway(t, { upstream: origin, policies: POLICIES });
  const set = loadPolicies(POLICIES, 'p.yaml');
  for (const key of KEYS) {
    const status = async (): Promise<string> => {
      const request = `GET /keys HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${key}\r\nConnection: close\r\n\r\n`;
      return (await sendRaw(port, Buffer.from(request).toString('latin1')).ended()).slice(9, 12);
    };
    t.equal(await status(), '200', key);
    await gateway.control.ban(
      namedBy({ subject: key, kind: 'key' }, set, await gateway.control.salt()).identity,
      60_000,
      '',
    );
    t.equal(await status(), '429', key);
  }
});

t.test('explain and policy tests read keys and paths beyond ASCII alike', async (t) => {
  const set = loadPolicies(POLICIES, 'p.yaml');
  const rehearsal = new Rehearsal(set, { clock: () => 0, salt: 'salt' });
  for (const key of KEYS) {
    const { digest } = namedBy({ subject: key, kind: 'key' }, set, 'salt').identity;
    const request = requestOf(`GET /keys/${key.trim()}`, [`x-api-key: ${key}`], '192.0.2.1');
    const asked = rehearsal.ask(request);
    t.match(asked, { kind: 'allow', match: { path: `/keys/${encodeURIComponent(key.trim())}` } });
    const located = rehearsal.locate(request);
    const presented = located.kind === 'located' ? identitiesOf(located) : located.reason;
    t.ok(typeof presented !== 'string' && presented.certain.some((one) => one.digest === digest), key);
  }
});

t.test('addresses, networks, digests and keys, and what is none of them', async (t) => {
  const file = join(import.meta.dirname, 'subjects.md');
  for (const [text = '', kind = ''] of casesUnder(file, 'Kinds')) t.equal(kindOf(text), kind, text);
  for (const [text = '', told = ''] of casesUnder(file, 'Mistakes')) {
    const message = new RegExp(`${RegExp.escape(told)}.*--key`);
    t.throws(() => kindOf(text), { statusCode: 400, message }, text);
  }
});
