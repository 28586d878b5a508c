import { join } from 'node:path';
import t from 'tap';
import { isOnlyCredential, presentedValues } from '#gateway/identity/credential.ts';
import type { CredentialSource } from '#gateway/identity/identifier.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';

const SOURCES: readonly CredentialSource[] = [
  { kind: 'header', header: 'x-api-key' },
  { kind: 'bearer', prefix: 'fbk_' },
];

/** Returns the credential, `none` or `ambiguous`. */
function presented(headers: readonly string[], sources = SOURCES): string {
  const [value = '(none)', another] = presentedValues(headers, sources);
  return another === undefined ? value : '(ambiguous)';
}

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'credentials.md'))) {
  t.test(heading, async (t) => {
    for (const [sent = '', expected] of cases) {
      const fields = sent.split(' | ').flatMap((field) => /^([^:]+): ?(.*)$/s.exec(field)?.slice(1) ?? []);
      t.equal(presented(fields), expected, sent);
    }
  });
}

t.test('a value has the sources of its identifier, and no others', async (t) => {
  t.equal(presented(['x-api-key', 'k'], [{ kind: 'bearer', prefix: '' }]), '(none)');
  t.equal(presented(['authorization', 'Bearer any'], [{ kind: 'bearer', prefix: '' }]), 'any');
  t.equal(
    presented(['X-Tenant', 'acme', 'x-api-key', 'k'], [{ kind: 'header', header: 'x-tenant' }]),
    'acme',
  );
});

t.test('a value of the size of a header section costs no more than reading it', async (t) => {
  const long = 'x'.repeat(1_000_000);
  t.equal(presented(['authorization', `Bearer ${' '.repeat(1_000_000)}`]), '(none)');
  t.equal(presented(['authorization', `${' '.repeat(1_000_000)}Bearer`]), '(none)');
  t.equal(presented(['authorization', `Bearer fbk_${long}`]), `fbk_${long}`);
});

t.test('cookies and query parameters are sources too', async (t) => {
  const sources: readonly CredentialSource[] = [
    { kind: 'cookie', cookie: 'sid' },
    { kind: 'query', parameter: 'key' },
    { kind: 'header', header: 'x-key' },
  ];
  const cases = [
    [['Cookie', 'a=b; sid=1'], '/', ['1']],
    [[], '/?key=1', ['1']],
    [['x-key', '1', 'cookie', 'sid=1'], '/?key=1', ['1']],
    [['x-key', '1', 'cookie', 'sid=2'], '/', ['1', '2']],
    [['x-key', '1'], '/?key=2', ['2', '1']],
    [['cookie', 'sid=1', 'cookie', 'sid=2'], '/', ['1', '2']],
    [[], '/?key=1&key=2', ['1', '2']],
    [['cookie', 'sid=; other=1'], '/?key=', []],
  ] as const;
  for (const [headers, target, values] of cases)
    t.strictSame(presentedValues(headers, sources, target), values, `${headers} ${target}`);
});

t.test('at most 17 different values are read, however many a request presents', async (t) => {
  const numbers = Array.from({ length: 40 }, (_, i) => `${i}`);
  const headers = numbers.flatMap((i) => ['x-api-key', i]);
  t.equal(presentedValues(headers, SOURCES).length, 17);
  const query = numbers.map((i) => `key=${i}`).join('&');
  t.equal(presentedValues(headers, [{ kind: 'query', parameter: 'key' }], `/?${query}`).length, 17);
});

t.test('a reply proves a credential only if it is the only one of its request', async (t) => {
  const carriers: readonly CredentialSource[] = [...SOURCES, { kind: 'cookie', cookie: 'sid' }];
  const key = ['x-api-key', 'fbk_1'];
  const cases: readonly (readonly [headers: readonly string[], value: string, isOnly: boolean])[] = [
    [key, 'fbk_1', true],
    [[...key, 'authorization', 'Bearer fbk_1'], 'fbk_1', true],
    [[...key, 'authorization', 'Bearer eyJ'], 'fbk_1', false],
    [[...key, 'authorization', 'Basic eA=='], 'fbk_1', false],
    [[...key, 'cookie', 'theme=dark'], 'fbk_1', false],
    [['cookie', 'theme=dark; sid=1'], '1', true],
    [['cookie', 'sid=1', 'authorization', 'Bearer fbk_1'], '1', false],
  ];
  for (const [rawHeaders, value, isOnly] of cases) {
    const sources = rawHeaders[0] === 'cookie' ? carriers.slice(2) : SOURCES;
    const presented = { rawHeaders, target: '/', value, sources, carriers };
    t.equal(isOnlyCredential(presented), isOnly, rawHeaders.join(' | '));
  }
});
