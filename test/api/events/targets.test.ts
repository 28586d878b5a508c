/** Each row says whether webhooks may point there, with the text that callers read. */
import t from 'tap';
import {
  createTargets,
  parseAllowedTargets,
  type Reach,
  type Resolve,
  type Targets,
} from '#api/events/targets.ts';

const PRIVATE = 'Webhook URL must not point to private or internal IP addresses';
const LOCAL = 'Webhook URL must not point to localhost or internal services';
const PUBLIC_ADDRESS = '93.184.215.14';

const answers: Readonly<Record<string, readonly string[]>> = {
  'hooks.example.com': [PUBLIC_ADDRESS, '2606:2800:21f::1'],
  'inside.example.com': ['10.1.2.3'],
  'mixed.example.com': [PUBLIC_ADDRESS, '127.0.0.1'],
  'six.example.com': ['::1'],
  'empty.example.com': [],
};
const resolve: Resolve = async (hostname) => {
  const found = answers[hostname];
  if (found === undefined) throw new Error('ENOTFOUND');
  return found;
};
function targets(allowed = '', allowsInternal = false, resolver = resolve) {
  return createTargets({
    allowed: parseAllowedTargets(allowed),
    allowsInternal,
    resolve: resolver,
    resolveTimeoutMs: 20,
  });
}

const assertTarget = (url: string, on: Targets, reach: Reach) => on.check(url, reach);

const refused: readonly (readonly [string, string])[] = [
  ['not a url', 'Invalid webhook URL format'],
  ['http://', 'Invalid webhook URL format'],
  [`https://hooks.example.com/${'x'.repeat(2_048)}`, 'Invalid webhook URL format'],
  ['ftp://hooks.example.com', 'Webhook URL must use HTTPS or HTTP protocol'],
  ['file:///etc/passwd', 'Webhook URL must use HTTPS or HTTP protocol'],
  ['javascript:alert(1)', 'Webhook URL must use HTTPS or HTTP protocol'],
  ['http://localhost/', LOCAL],
  ['http://LOCALHOST:3000/', LOCAL],
  ['http://localhost./', LOCAL],
  ['http://app.localhost/', LOCAL],
  ['http://localhost.localdomain/', LOCAL],
  ['http://ip6-localhost/', LOCAL],
  ['http://ip6-loopback/', LOCAL],
  ['http://metadata.google.internal/computeMetadata/v1/', LOCAL],
  ['http://127.0.0.1/', PRIVATE],
  ['http://127.1/', PRIVATE],
  ['http://2130706433/', PRIVATE],
  ['http://0x7f000001/', PRIVATE],
  ['http://0x7f.0.0.1/', PRIVATE],
  ['http://0177.0.0.1/', PRIVATE],
  ['http://017700000001/', PRIVATE],
  ['http://0/', PRIVATE],
  ['http://169.254.169.254/latest/meta-data/', PRIVATE],
  ['http://[::1]/', PRIVATE],
  ['http://user:password@10.0.0.1/', PRIVATE],
  ['https://inside.example.com/', PRIVATE],
  ['https://mixed.example.com/', PRIVATE],
  ['https://six.example.com/', PRIVATE],
  ['https://empty.example.com/', 'Could not resolve webhook URL hostname: empty.example.com'],
  ['https://nowhere.example.com/', 'Could not resolve webhook URL hostname: nowhere.example.com'],
];
for (const [url, message] of refused) {
  t.test(`400: ${url.slice(0, 60)}`, async (t) => {
    await t.rejects(assertTarget(url, targets(), 'public'), {
      code: 'bad_request',
      message,
      details: { url: message },
    });
  });
}

for (const url of [
  'https://hooks.example.com/a?b=c',
  'http://hooks.example.com:8080',
  'https://HOOKS.example.com./',
  `http://${PUBLIC_ADDRESS}/`,
  'http://[2606:2800:21f::1]/',
  'https://user:password@hooks.example.com/',
]) {
  t.test(`accepts ${url}`, async (t) => {
    await t.resolves(assertTarget(url, targets(), 'public'));
  });
}

t.test('400: the name server does not answer in time', async (t) => {
  const silent: Resolve = () => new Promise(() => {});
  await t.rejects(assertTarget('https://hooks.example.com/', targets('', false, silent), 'public'), {
    message: 'DNS resolution timed out for webhook URL hostname: hooks.example.com',
  });
});

t.test('the operator can list hosts, addresses and networks', async (t) => {
  const listed = targets('localhost, Inside.example.com, 127.0.0.1, fd00::/8');
  for (const url of ['http://127.0.0.1/', 'https://inside.example.com/', 'http://[fd00::5]/']) {
    await t.resolves(assertTarget(url, listed, 'operators'), url);
  }
  await t.rejects(assertTarget('http://127.0.0.2/', listed, 'operators'), 'only what is listed');
  await t.rejects(
    assertTarget('https://six.example.com/', listed, 'operators'),
    'another host with such an address',
  );
  await t.resolves(
    assertTarget('https://mixed.example.com/', listed, 'operators'),
    'public and in a listed network',
  );
  const networks = targets('10.0.0.0/8');
  await t.resolves(
    assertTarget('https://inside.example.com/', networks, 'operators'),
    'the address of the name is in a listed network',
  );
  await t.rejects(assertTarget('http://localhost/', targets('127.0.0.0/8'), 'operators'), { message: LOCAL });
});

t.test('only hosts on the operator’s list are resolved with the files of this machine', async (t) => {
  const asked: [string, boolean][] = [];
  const noting: Resolve = async (hostname, isOperators) => {
    asked.push([hostname, isOperators]);
    return [PUBLIC_ADDRESS];
  };
  const check = targets('n8n', false, noting);
  await assertTarget('http://n8n:5678/', check, 'operators');
  await assertTarget('http://other/', check, 'operators');
  t.same(asked, [
    ['n8n', true],
    ['other', false],
  ]);
});

t.test('a setting for tests allows private targets, but still only http and https', async (t) => {
  const open = targets('', true);
  await t.resolves(assertTarget('http://127.0.0.1:1/', open, 'operators'));
  await t.resolves(assertTarget('http://localhost/', open, 'operators'));
  await t.rejects(assertTarget('ftp://127.0.0.1/', open, 'operators'));
  await t.rejects(assertTarget('127.0.0.1', open, 'operators'));
});

t.test('the list and the setting have no effect for organizations other than the operator’s', async (t) => {
  const asked: boolean[] = [];
  const noting: Resolve = async (hostname, isOperators) => {
    asked.push(isOperators);
    return resolve(hostname, isOperators);
  };
  const listed = targets('localhost, inside.example.com, 127.0.0.1, fd00::/8', false, noting);
  const open = targets('', true, noting);
  for (const [url, message] of [
    ['http://localhost/', LOCAL],
    ['http://127.0.0.1/', PRIVATE],
    ['http://[fd00::5]/', PRIVATE],
    ['https://inside.example.com/', PRIVATE],
    ['https://mixed.example.com/', PRIVATE],
  ] as const) {
    await t.rejects(assertTarget(url, listed, 'public'), { message }, url);
    await t.rejects(assertTarget(url, open, 'public'), { message }, url);
  }
  await t.resolves(assertTarget('https://hooks.example.com/', listed, 'public'));
  t.same(new Set(asked), new Set([false]), 'the hosts file of this machine is not used');
});

t.test('an error names entries that are no host, address or network', async (t) => {
  for (const entry of [
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/8/8',
    'http://x',
    'a b',
    '10.0.0',
    '*.internal',
    '[::1]',
  ]) {
    t.throws(() => parseAllowedTargets(`good,${entry}`), {
      message: new RegExp(`^"${RegExp.escape(entry)}" is neither`),
    });
  }
  t.same(parseAllowedTargets(' , '), { hosts: [], networks: [] });
});
