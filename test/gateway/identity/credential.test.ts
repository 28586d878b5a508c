import t from 'tap';
import { isOnlyCredential, presentedValues } from '#gateway/identity/credential.ts';
import type { CredentialSource } from '#gateway/identity/identifier.ts';

const SOURCES: readonly CredentialSource[] = [
  { kind: 'header', header: 'x-api-key' },
  { kind: 'bearer', prefix: 'fbk_' },
];

/** Returns the credential, `none` or `ambiguous`. */
function presented(headers: readonly string[], sources = SOURCES): string {
  const [value = '(none)', another] = presentedValues(headers, sources);
  return another === undefined ? value : '(ambiguous)';
}

const OTHER = ['Host', 'example.com', 'Accept', '*/*'];

const TABLE: readonly (readonly [promise: string, cases: readonly (readonly [string[], string])[]])[] = [
  [
    'other fields present no key',
    [
      [[], '(none)'],
      [OTHER, '(none)'],
      [['X-Api-Key-Id', 'k'], '(none)'],
      [['xapi-key', 'k'], '(none)'],
    ],
  ],
  [
    'reads x-api-key in any case, and trims it',
    [
      [['x-api-key', 'fbk_1'], 'fbk_1'],
      [['X-API-Key', 'fbk_1'], 'fbk_1'],
      [['X-API-KEY', ' \tfbk_1 \t'], 'fbk_1'],
      [[...OTHER, 'x-api-key', 'of any shape'], 'of any shape'],
      [['x-api-key', 'FBK_1'], 'FBK_1'],
    ],
  ],
  [
    'a blank value counts as absent',
    [
      [['x-api-key', ''], '(none)'],
      [['x-api-key', ' \t '], '(none)'],
      [['x-api-key', '', 'authorization', 'Bearer fbk_1'], 'fbk_1'],
      [['authorization', ''], '(none)'],
      [['authorization', 'Bearer'], '(none)'],
      [['authorization', 'Bearer '], '(none)'],
    ],
  ],
  [
    'reads Bearer in any case, and keeps the case of the key',
    [
      [['authorization', 'Bearer fbk_Ab'], 'fbk_Ab'],
      [['Authorization', 'bearer fbk_Ab'], 'fbk_Ab'],
      [['AUTHORIZATION', 'BEARER \t fbk_Ab  '], 'fbk_Ab'],
      [['authorization', '  Bearer fbk_Ab'], 'fbk_Ab'],
      [['authorization', 'Bearer FBK_Ab'], 'FBK_Ab'],
      [['authorization', 'Bearer fbk_'], 'fbk_'],
    ],
  ],
  [
    'of several words behind Bearer the first is the key, because upstreams may split at spaces',
    [
      [['authorization', 'Bearer fbk_1 more'], 'fbk_1'],
      [['authorization', 'Bearer fbk_1\tfbk_2'], 'fbk_1'],
    ],
  ],
  [
    'other schemes and other tokens are no keys',
    [
      [['authorization', 'Basic fbk_1'], '(none)'],
      [['authorization', 'fbk_1'], '(none)'],
      [['authorization', 'Bearerfbk_1'], '(none)'],
      [['authorization', 'Bearer eyJhbGciOi.J9'], '(none)'],
      [['authorization', 'Bearer fb'], '(none)'],
      [['authorization', 'Bearer x fbk_1'], '(none)'],
      [['proxy-authorization', 'Bearer fbk_1'], '(none)'],
    ],
  ],
  [
    'the same key twice is one key',
    [
      [['x-api-key', 'fbk_1', 'authorization', 'Bearer fbk_1'], 'fbk_1'],
      [['authorization', 'Bearer fbk_1', 'X-Api-Key', ' fbk_1 '], 'fbk_1'],
      [['x-api-key', 'fbk_1', ...OTHER, 'x-api-key', 'fbk_1'], 'fbk_1'],
      [['x-api-key', 'fbk_1', 'x-api-key', ''], 'fbk_1'],
      [['x-api-key', 'fbk_1', 'authorization', 'Basic abc'], 'fbk_1'],
      [['x-api-key', 'fbk_1', 'authorization', 'Bearer session'], 'fbk_1'],
    ],
  ],
  [
    'two different keys are ambiguous',
    [
      [['x-api-key', 'fbk_1', 'authorization', 'Bearer fbk_2'], '(ambiguous)'],
      [['x-api-key', 'fbk_1', 'authorization', 'Bearer fbk_2 more'], '(ambiguous)'],
      [['x-api-key', 'fbk_1', 'x-api-key', 'fbk_2'], '(ambiguous)'],
      [['authorization', 'Bearer fbk_1', 'authorization', 'Bearer fbk_2'], '(ambiguous)'],
      [['x-api-key', 'fbk_1', 'x-api-key', 'FBK_1'], '(ambiguous)'],
      [['x-api-key', 'a', 'x-api-key', 'a', 'x-api-key', 'b'], '(ambiguous)'],
    ],
  ],
];

for (const [promise, cases] of TABLE) {
  t.test(promise, async (t) => {
    for (const [headers, expected] of cases) t.equal(presented(headers), expected, headers.join(' | '));
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
