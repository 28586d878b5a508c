/** Invites: who may invite, how often, and the link in a mail or in the reply. */
import t, { type Test } from 'tap';
import { publicUrl, startApi, type TestApi } from '#test/support/api-app.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson, addTeam, firstOrganization } from '#test/support/people.ts';

const HOUR = 60 * 60 * 1000;

interface World {
  readonly api: TestApi;
  readonly url: string;
  readonly owner: Browser;
}

/** @param hasMail mails are accepted, but not sent */
async function begin(t: Test, hasMail: boolean): Promise<World> {
  const api = await startApi(t, {
    env: { SIGNUP_ENABLED: '0', ...(hasMail ? { SMTP_URL: 'smtp://127.0.0.1:9' } : {}) },
  });
  return {
    api,
    url: `/api/v1/organizations/${await firstOrganization(api)}/invites`,
    owner: await logInOwner(api),
  };
}

const mailsOf = (api: TestApi) =>
  api.context.db
    .selectFrom('mailOutbox')
    .select(['recipient', 'subject', 'body'])
    .where('kind', '=', 'invite')
    .execute();
const works = async (api: TestApi, link: string): Promise<boolean> =>
  (await openBrowser(api).call('GET', link.slice(publicUrl.length))).status === 200;

t.test('POST 200: sends the link by mail only', async (t) => {
  const { api, url, owner } = await begin(t, true);
  const reply = await owner.call('POST', url, { email: ' Ada@Example.com ' });
  t.equal(reply.status, 200);
  t.match(reply.json.data, { email: 'ada@example.com', role: 'member', teamIds: [], link: null });
  t.equal(Date.parse(reply.json.data.expiresAt) - api.context.clock(), 7 * 24 * HOUR);
  const [mail] = await mailsOf(api);
  t.match(mail, {
    recipient: 'ada@example.com',
    subject: 'Invitation to My organization',
    body: /^Owner invites you to My organization, as member\. Open this link within seven days/,
  });
  const link = /https:\S+/.exec(mail?.body ?? '')?.[0] ?? '';
  t.match(link, new RegExp(`^${publicUrl}/invite\\?token=[\\w-]{43}$`));
  t.ok(await works(api, link));
  const listed = await owner.call('GET', url);
  t.match(listed.json.data, [{ email: 'ada@example.com', invitedBy: String }]);
  const stored = await api.context.db.selectFrom('invites').selectAll().execute();
  t.notMatch(JSON.stringify([listed.json, stored]), link.split('token=')[1], 'only a hash is stored');
});

t.test('POST 200: shows the link once if there is no mail server', async (t) => {
  const { api, url, owner } = await begin(t, false);
  const reply = await owner.call('POST', url, { email: 'ada@example.com', role: 'manager' });
  const { link, id } = reply.json.data;
  t.match(link, /\/invite\?token=/);
  t.ok(await works(api, link));
  t.same(await mailsOf(api), []);
  t.notMatch((await owner.call('GET', url)).text, /token|"link"/);

  api.advance(8 * 24 * HOUR);
  const later = await logInOwner(api);
  t.notOk(await works(api, link), 'the first link has ended');
  const again = await later.call('POST', `${url}/${id}/resend`);
  t.equal(again.status, 200);
  t.equal(Date.parse(again.json.data.expiresAt) - api.context.clock(), 7 * 24 * HOUR);
  t.ok(await works(api, again.json.data.link));
  const third = await later.call('POST', `${url}/${id}/resend`);
  t.notOk(await works(api, again.json.data.link), 'a new link ends the one before it');
  t.equal((await later.call('DELETE', `${url}/${id}`)).status, 200);
  t.notOk(await works(api, third.json.data.link), 'a revoked link is invalid');
  t.equal((await later.call('DELETE', `${url}/${id}`)).status, 404);
  t.equal((await later.call('POST', `${url}/${id}/resend`)).status, 404);
  t.same((await later.call('GET', url)).json.data, []);
});

t.test('401: managers invite only members, and members nobody; people outside get 404', async (t) => {
  const { api, url, owner } = await begin(t, false);
  const manager = (await addPerson(api, 'Manager', 'manager')).browser;
  const member = (await addPerson(api, 'Member', 'member')).browser;
  const outsider = (await addPerson(api, 'Outsider', null)).browser;
  const post = (who: Browser, email: string, role: string) => who.call('POST', url, { email, role });
  t.equal((await post(manager, 'a@example.com', 'member')).status, 200);
  t.equal((await post(manager, 'b@example.com', 'manager')).status, 401);
  t.equal((await post(manager, 'b@example.com', 'owner')).status, 401);
  const { id } = (await post(owner, 'c@example.com', 'owner')).json.data;
  t.equal((await manager.call('POST', `${url}/${id}/resend`)).status, 401, 'nor send it again');
  t.equal((await post(member, 'd@example.com', 'member')).status, 401);
  t.equal((await member.call('GET', url)).status, 401);
  t.equal((await outsider.call('GET', url)).status, 404);
  t.equal((await post(outsider, 'd@example.com', 'member')).status, 404);
});

t.test('400: a malformed invite; 409: members, and people already invited', async (t) => {
  const { api, url, owner } = await begin(t, false);
  for (const body of [
    {},
    { email: 'nobody' },
    { email: 'a@b.example\r\nBcc: c@d.example' },
    { email: 'a@example.com', role: 'boss' },
    { email: 'a@example.com', teamIds: ['none'] },
  ]) {
    t.equal((await owner.call('POST', url, body)).status, 400, JSON.stringify(body));
  }
  t.equal((await owner.call('POST', url, { email: 'owner@example.com' })).status, 409);
  const { id } = (await owner.call('POST', url, { email: 'ada@example.com' })).json.data;
  const twice = await owner.call('POST', url, { email: 'Ada@example.com' });
  t.equal(twice.status, 409);
  t.match(twice.json, { message: /send that invite again, or revoke it/, details: { inviteId: id } });
  const both = await Promise.all([
    owner.call('POST', url, { email: 'ben@example.com' }),
    owner.call('POST', url, { email: 'ben@example.com' }),
  ]);
  t.strictSame(both.map(({ status }) => status).sort(), [200, 409], 'one of two concurrent invites succeeds');
  await owner.call('DELETE', `${url}/${id}`);
  t.equal((await owner.call('POST', url, { email: 'ada@example.com' })).status, 200, 'after a revocation');
  t.equal((await api.context.db.selectFrom('invites').select('id').execute()).length, 2);
});

t.test('429: a mailbox gets five invitations in an hour, and the earlier link stays valid', async (t) => {
  const { api, url, owner } = await begin(t, true);
  const { id } = (await owner.call('POST', url, { email: 'ada@example.com' })).json.data;
  for (let i = 0; i < 4; i += 1) {
    t.equal((await owner.call('POST', `${url}/${id}/resend`)).status, 200);
  }
  const refused = await owner.call('POST', `${url}/${id}/resend`);
  t.equal(refused.status, 429);
  t.equal(refused.headers['retry-after'], '3600');
  const mails = await mailsOf(api);
  t.equal(mails.length, 5);
  const links = mails.map(({ body }) => /https:\S+/.exec(body)?.[0] ?? '');
  const serving = await Promise.all(links.map((link) => works(api, link)));
  t.equal(serving.filter(Boolean).length, 1);
});

t.test('403: invites to 200 addresses in a day, including those revoked since', async (t) => {
  const { api, url, owner } = await begin(t, false);
  const { id: userId } = (await owner.call('GET', '/api/v1/me')).json;
  const row = {
    organizationId: await firstOrganization(api),
    createdAt: '2026-01-02T00:00:00.000Z',
    role: 'member',
    teamIds: '[]',
    invitedBy: userId,
    expiresAt: '2026-01-09T00:00:00.000Z',
    revokedAt: '2026-01-02T00:00:00.000Z',
  } as const;
  for (let i = 0; i < 200; i += 1) {
    await api.context.db
      .insertInto('invites')
      .values({ ...row, id: `i${i}`, email: `${i}@example.com`, hashedToken: `h${i}` })
      .execute();
  }
  const refused = await owner.call('POST', url, { email: 'ada@example.com' });
  t.equal(refused.status, 403);
  t.match(refused.json, { message: /200 open invites/ });
  api.advance(24 * HOUR);
  const later = await logInOwner(api);
  t.equal((await later.call('POST', url, { email: 'ada@example.com' })).status, 200, 'a day later');
  t.equal((await api.context.db.selectFrom('invites').select('id').execute()).length, 1);
});

t.test('an invited person joins those teams of the invite that still exist', async (t) => {
  const { api, url, owner } = await begin(t, false);
  const team = await addTeam(api, 'Support', {}, { ws1: 'readWrite' });
  const gone = await addTeam(api, 'Gone', {}, {});
  const made = await owner.call('POST', url, { email: 'ada@example.com', teamIds: [team, gone, team] });
  t.same(made.json.data.teamIds, [team, gone]);
  await api.context.db.deleteFrom('teams').where('id', '=', gone).execute();
  const browser = openBrowser(api);
  const token = made.json.data.link.split('token=')[1];
  await browser.form('/api/auth/accept-invite', { token, name: 'Ada', password: 'Password1' });
  t.match((await browser.call('GET', '/api/v1/management/workspaces')).json.data, [
    { id: 'ws1', permission: 'write' },
  ]);
});
