/** `people`, as an operator calls it while the API runs. */
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { hashApiKey } from '#api/auth/api-key.ts';
import { deleteMarked } from '#api/resources/organizations/deletion.ts';
import { publicUrl, startApi, type TestApi } from '#test/support/api-app.ts';
import { apiCommand } from '#test/support/cli.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { countTables } from '#test/support/full-workspace.ts';
import { type Browser, logInOwner, openBrowser, signUp } from '#test/support/login.ts';
import { lastMail } from '#test/support/mails.ts';
import { firstOrganization, makeKey } from '#test/support/people.ts';

interface Running {
  readonly api: TestApi;
  people(...args: readonly string[]): ReturnType<typeof apiCommand>;
  /** @returns the JSON document of a command that succeeds */
  told(...args: readonly string[]): Promise<ReturnType<typeof JSON.parse>>;
}

async function start(t: Test): Promise<Running> {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url }, clock: Date.now });
  const env = { DATABASE_URL: url, PUBLIC_URL: publicUrl };
  const people: Running['people'] = (...args) => apiCommand(['people', ...args], { env });
  return {
    api,
    people,
    async told(...args) {
      const { code, stdout, stderr } = await people(...args, '--json');
      t.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return JSON.parse(stdout);
    },
  };
}

const tokenOf = (link: string): string => new URL(link).searchParams.get('token') ?? '';
const verify = (browser: Browser, fields: Record<string, string>) =>
  browser.form('/api/auth/callback/token', fields);
const workspacesOf = async (browser: Browser): Promise<readonly { id: string }[]> =>
  (await browser.call('GET', '/api/v1/management/workspaces')).json.data;
const organizationsIn = ({ context }: TestApi) =>
  context.db.selectFrom('organizations').select('id').execute();

t.test('add: the person gets a link, chooses a password, and manages the organization', async (t) => {
  const { api, people } = await start(t);
  const stranger = { name: 'Mallory', email: 'ben@example.com', password: 'Password1' };
  await signUp(api, stranger);
  const { code, stdout, stderr } = await people('add', ' Ben@Example.com ');
  t.equal(code, 0, stderr);
  t.match(stdout, /^ben@example\.com is now a manager of My organization\.$/m);
  const link = /^https:\S+$/m.exec(stdout)?.[0] ?? '';
  t.match(link, `${publicUrl}/auth/verify?token=`);

  const page = (await api.client('GET', link.slice(publicUrl.length), undefined, { accept: 'text/html' }))
    .text;
  t.match(page, /name="password"/);

  const token = tokenOf(link);
  const browser = openBrowser(api);
  t.equal((await verify(browser, { token })).status, 400, 'the link alone is not enough');
  t.notMatch((await verify(browser, { token, password: 'Password2', name: 'Ben' })).json.url, /error=/);
  t.equal((await workspacesOf(browser)).length, 1);
  t.equal((await organizationsIn(api)).length, 1, 'the person gets no organization of their own');
  t.match((await verify(openBrowser(api), { token, password: 'Password3' })).json.url, /error=/, 'once');
  t.notMatch((await openBrowser(api).logIn('ben@example.com', 'Password2')).json.url, /error=/);
  const theirs = await openBrowser(api).logIn(stranger.email, stranger.password);
  t.match(theirs.json.url, /error=/, 'the password of a sign-up by somebody else is not confirmed');
});

t.test(
  'add again: a new link, and the earlier one ends; an account in use gets none; list tells who used it',
  async (t) => {
    const { api, told, people } = await start(t);
    const first = await told('add', 'ben@example.com');
    const second = await told('add', 'ben@example.com');
    const { stdout } = await people('list');
    t.match(stdout, /owner@example\.com +owner +Owner/);
    t.match(stdout, /ben@example\.com +manager .*not used the link/);
    t.match(await told('list'), {
      organization: { name: 'My organization' },
      people: [
        { email: 'owner@example.com', role: 'owner', isVerified: true },
        { email: 'ben@example.com', role: 'manager', isVerified: false },
      ],
    });
    t.match(second, {
      email: 'ben@example.com',
      role: 'manager',
      organizationId: await firstOrganization(api),
    });
    const use = (link: string) =>
      verify(openBrowser(api), { token: tokenOf(link), password: 'Password2', name: 'Ben' });
    t.match((await use(first.link)).json.url, /error=/);
    t.notMatch((await use(second.link)).json.url, /error=/);
    t.match(await told('add', 'ben@example.com'), { role: 'manager', link: null });
    t.match(
      (await people('add', 'ben@example.com')).stdout,
      /The person logs in with the password of the account/,
    );
    t.match(await told('add', 'owner@example.com'), { role: 'owner', link: null }, 'an owner stays one');
  },
);

t.test('remove: the account with its sessions and links, and keys are named', async (t) => {
  const { api, people, told } = await start(t);
  const { link } = await told('add', 'ben@example.com');
  const ben = openBrowser(api);
  await verify(ben, { token: tokenOf(link), password: 'Password2', name: 'Ben' });
  const hashedKey = hashApiKey(await makeKey(ben, "Ben's key"));
  const ofBen = api.context.db.selectFrom('apiKeys').select('id').where('hashedKey', '=', hashedKey);
  const key = await ofBen.executeTakeFirstOrThrow();
  const { code, stdout } = await people('remove', 'ben@example.com');
  t.equal(code, 0);
  t.match(stdout, /^The account of ben@example\.com is deleted\.$/m);
  t.notMatch(stdout, 'My organization', 'it has other people');
  t.match(
    stdout,
    new RegExp(`Ben's key +${key.id}|${key.id} +Ben's key`),
    'a key that the person may still know',
  );
  t.equal((await ben.call('GET', '/api/v1/me')).status, 401);
  t.match((await openBrowser(api).logIn('ben@example.com', 'Password2')).json.url, /error=/);
  t.match(await told('list'), { people: [{ email: 'owner@example.com' }] });

  const zoe = await told('add', 'zoe@example.com');
  t.same((await told('remove', 'zoe@example.com')).apiKeys, []);
  const late = { token: tokenOf(zoe.link), password: 'Password2', name: 'Zoe' };
  t.match((await verify(openBrowser(api), late)).json.url, /error=/, 'an unused link ends');
});

t.test('remove: what belongs to the person alone goes too, and is gone at once', async (t) => {
  const { api, people, told } = await start(t);
  const { db } = api.context;
  const before = await countTables(db);
  const ada = openBrowser(api);
  const account = { name: 'Ada', email: 'ada@example.com', password: 'Password1' };
  await signUp(api, account);
  await verify(ada, { token: (await lastMail(api, 'verifyEmail')).token, password: 'Password1' });
  const key = await makeKey(ada, 'all');
  const [workspace] = (await ada.call('GET', '/api/v1/management/workspaces')).json.data;
  await ada.form('/auth/forgot-password', { email: 'ada@example.com' });

  t.match(await told('remove', ' ADA@example.com'), {
    email: 'ada@example.com',
    organizations: ['Organization of Ada'],
    apiKeys: [],
  });
  const asKey = { 'x-api-key': key };
  t.equal((await api.client('GET', '/api/v1/management/workspaces', undefined, asKey)).status, 401);
  t.equal((await api.client('GET', `/api/v1/client/${workspace.id}/environment`)).status, 404);
  const { organizationId } = workspace;
  const added = await people('add', 'ben@example.com', '--organization', organizationId);
  t.match(added, { code: 1, stderr: /There is no organization/ }, 'nobody joins what is being deleted');

  await deleteMarked(api.context, () => false, pino({ level: 'silent' }));
  t.strictSame(await countTables(db), before, 'no row is left, and no mail waits for the person');
});

t.test('an organization keeps an owner; another one takes over with --owner', async (t) => {
  const { api, people, told } = await start(t);
  const owner = await logInOwner(api);
  await told('add', 'ben@example.com');
  const refused = await people('remove', 'owner@example.com');
  t.equal(refused.code, 1);
  t.match(refused.stderr, /is the only owner of My organization.*people -- add EMAIL --owner/);
  t.equal((await workspacesOf(owner)).length, 1, 'nothing has changed');

  const { link } = await told('add', 'ben@example.com', '--owner');
  t.equal((await people('remove', 'owner@example.com')).code, 1, 'the new owner cannot log in yet');
  await verify(openBrowser(api), { token: tokenOf(link), password: 'Password2', name: 'Ben' });
  t.equal((await people('remove', 'owner@example.com')).code, 0);
  t.equal((await owner.call('GET', '/api/v1/management/workspaces')).status, 401);
  t.match(await told('list'), { people: [{ email: 'ben@example.com', role: 'owner' }] });
});
