import { join } from 'node:path';
import t from 'tap';
import { isOnlyCredential, presentedValues } from '#gateway/identity/credential.ts';
import type { CredentialSource } from '#gateway/identity/identifier.ts';
import { arrowCases, casesUnder } from '#test/support/arrow-cases.ts';

const PAGE = join(import.meta.dirname, 'credentials.md');
const SOURCES: readonly CredentialSource[] = [
  { kind: 'header', header: 'x-api-key' },
  { kind: 'bearer', prefix: 'fbk_' },
];

/** Returns the credential, `none` or `ambiguous`. */
function presented(headers: readonly string[], sources = SOURCES): string {
  const [value = '(none)', another] = presentedValues(headers, sources);
  return another === undefined ? value : '(ambiguous)';
}

const fieldsOf = (text: string): string[] =>
  text.split(' | ').flatMap((field) => /^([^:]+): ?(.*)$/s.exec(field)?.slice(1) ?? []);

const ALONE = 'A reply proves a credential that is alone';
const SEVERAL = 'All values of a cookie, a query parameter and a field';

for (const { heading, cases } of arrowCases(PAGE)) {
  if (heading === ALONE || heading === SEVERAL) continue;
  t.test(heading, async (t) => {
    for (const [sent = '', expected] of cases) t.equal(presented(fieldsOf(sent)), expected, sent);
  });
}

t.test(ALONE, async (t) => {
  const carriers: readonly CredentialSource[] = [...SOURCES, { kind: 'cookie', cookie: 'sid' }];
  for (const [sent = '', value = '', expected] of casesUnder(PAGE, ALONE)) {
    const rawHeaders = fieldsOf(sent);
    const sources = rawHeaders[0] === 'cookie' ? carriers.slice(2) : SOURCES;
    const isOnly = isOnlyCredential({ rawHeaders, target: '/', value, sources, carriers });
    t.equal(isOnly ? 'alone' : 'not alone', expected, sent);
  }
});

t.test(SEVERAL, async (t) => {
  const sources: readonly CredentialSource[] = [
    { kind: 'cookie', cookie: 'sid' },
    { kind: 'query', parameter: 'key' },
    { kind: 'header', header: 'x-key' },
  ];
  for (const [target = '', sent = '', expected] of casesUnder(PAGE, SEVERAL))
    t.equal(
      presentedValues(fieldsOf(sent), sources, target).join(' ') || 'none',
      expected,
      `${target} ${sent}`,
    );
});

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

t.test('at most 17 different values are read, however many a request presents', async (t) => {
  const numbers = Array.from({ length: 40 }, (_, i) => `${i}`);
  const headers = numbers.flatMap((i) => ['x-api-key', i]);
  t.equal(presentedValues(headers, SOURCES).length, 17);
  const query = numbers.map((i) => `key=${i}`).join('&');
  t.equal(presentedValues(headers, [{ kind: 'query', parameter: 'key' }], `/?${query}`).length, 17);
});
