/** Holds targets.md, and says when names are resolved. */
import { join } from 'node:path';
import t from 'tap';
import { ApiError } from '#api/errors.ts';
import {
  createTargets,
  isPublic,
  parseAllowedTargets,
  type Reach,
  type Resolve,
  type Targets,
} from '#api/events/targets.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const PUBLIC_ADDRESS = '93.184.215.14';
const answers: Readonly<Record<string, readonly string[]>> = {
  'hooks.example.com': [PUBLIC_ADDRESS, '2606:2800:21f::1'],
  'inside.example.com': ['10.1.2.3'],
  'mixed.example.com': [PUBLIC_ADDRESS, '127.0.0.1'],
  'six.example.com': ['::1'],
  'empty.example.com': [],
  localhost: ['127.0.0.1'],
};
const resolve: Resolve = async (hostname) => {
  const found = answers[hostname];
  if (found === undefined) throw new Error('ENOTFOUND');
  return found;
};
const targets = (allowed = '', allowsInternal = false, resolver = resolve) =>
  createTargets({
    allowed: parseAllowedTargets(allowed),
    allowsInternal,
    resolve: resolver,
    resolveTimeoutMs: 20,
  });
const under = (heading: string) => casesUnder(join(import.meta.dirname, 'targets.md'), heading);

/** @returns `accepted`, or the message of the refusal, which is also about the field */
async function outcomeOf(on: Targets, url: string, reach: Reach): Promise<unknown> {
  try {
    await on.check(url, reach);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'bad_request') throw error;
    const { url: told } = error.details as { url?: unknown };
    return told === error.message ? told : error.details;
  }
}

t.test('addresses', async (t) => {
  for (const [addresses = '', expected] of under('Addresses that are public'))
    for (const address of addresses.split(' ')) t.equal(isPublic(address), expected === 'yes', address);
});

t.test('targets of any organization; the list and the setting of the operator change nothing', async (t) => {
  const asked = new Set<boolean>();
  const noting: Resolve = async (hostname, isOperators) => {
    asked.add(isOperators);
    return resolve(hostname, isOperators);
  };
  const all = 'localhost, inside.example.com, six.example.com, 0.0.0.0/0, ::/0';
  for (const on of [targets(), targets(all, false, noting), targets('', true, noting)])
    for (const [url = '', expected] of under('Targets of any organization'))
      t.equal(await outcomeOf(on, url, 'public'), expected, url);
  t.same(asked, new Set([false]), 'the hosts file of this machine is not used');
  const long = `https://hooks.example.com/${'x'.repeat(2_048)}`;
  t.equal(await outcomeOf(targets(), long, 'public'), 'Invalid webhook URL format');
});

t.test('targets of the operator’s organization', async (t) => {
  for (const [list = '', url = '', expected] of under("Targets of the operator's organization, with a list"))
    t.equal(await outcomeOf(targets(list), url, 'operators'), expected, `${list} | ${url}`);
  const open = "Targets of the operator's organization, where a setting for tests opens everything";
  for (const [url = '', expected] of under(open))
    t.equal(await outcomeOf(targets('', true), url, 'operators'), expected, url);
});

t.test('the name server does not answer in time', async (t) => {
  const silent = targets('', false, () => new Promise(() => {}));
  t.equal(
    await outcomeOf(silent, 'https://hooks.example.com/', 'public'),
    'DNS resolution timed out for webhook URL hostname: hooks.example.com',
  );
});

t.test('only hosts on the operator’s list are resolved with the files of this machine', async (t) => {
  const asked: [string, boolean][] = [];
  const check = targets('n8n', false, async (hostname, isOperators) => {
    asked.push([hostname, isOperators]);
    return [PUBLIC_ADDRESS];
  });
  for (const host of ['n8n', 'other']) await check.check(`http://${host}:5678/`, 'operators');
  t.same(asked, [
    ['n8n', true],
    ['other', false],
  ]);
});

t.test('an error names entries that are no host, address or network', async (t) => {
  for (const [list = '', message = ''] of under('Entries that are no host, address or network'))
    t.throws(() => parseAllowedTargets(list), {
      message: new RegExp(`^${RegExp.escape(message.replace('…', ''))}`),
    });
  t.same(parseAllowedTargets(' , '), { hosts: [], networks: [] });
});
