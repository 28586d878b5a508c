/** Loads policy files with mistakes: those of `test/fixtures/policy-mistakes.txt`, and larger ones. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t, { type Test } from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { FILE_KEYS } from '#gateway/policy/keys/file-keys.ts';
import { POLICY_KEYS } from '#gateway/policy/keys/policy-keys.ts';
import { PolicyFileError, type Problem } from '#gateway/policy/problems.ts';
import { projectRoot } from '#test/support/process.ts';

/** Texts that the expectations name instead of repeating them. */
const NAMED = {
  '{FILE_KEYS}': Object.keys(FILE_KEYS).join(', '),
  '{POLICY_KEYS}': Object.keys(POLICY_KEYS).join(', '),
  '{DEL}': '\u007f',
};

interface Mistake {
  /** The position as `line:column`. */
  readonly at: string;
  /** Words of the message: the mistake and its fix. */
  readonly mention: string;
}

interface Case {
  readonly name: string;
  readonly file: string;
  readonly mistakes: readonly Mistake[];
}

function readCase(text: string, valid: string): Case {
  const [name = '', ...lines] = text.trimEnd().split('\n');
  const file = lines.some((line) => /^ *\d+[|+-]/.test(line)) ? valid.split('\n') : [];
  const mistakes: Mistake[] = [];
  for (const line of lines) {
    const [, at, words] = /^(\d+:\d+): (.+)$/.exec(line) ?? [];
    const [, number, change, content = ''] = /^ *(\d*)([|+-])(.*)$/.exec(line) ?? [];
    if (at !== undefined && words !== undefined) {
      const mention = Object.entries(NAMED).reduce((told, [key, value]) => told.replace(key, value), words);
      mistakes.push({ at, mention });
    } else if (number === '') file.push(content);
    else file.splice(Number(number) - 1, change === '+' ? 0 : 1, ...(change === '-' ? [] : [content]));
  }
  return { name, file: file.map((line) => `${line}\n`).join(''), mistakes };
}

const [introduction = '', ...texts] = readFileSync(
  resolve(projectRoot, 'test/fixtures/policy-mistakes.txt'),
  'utf8',
).split(/^# /m);
const UNCHANGED = introduction.slice(introduction.indexOf('version: 1')).trimEnd();
const CASES = texts.map((text) => readCase(text, UNCHANGED));

function problemsOf(t: Test, text: string): readonly Problem[] {
  try {
    loadPolicies(text, 'policies.yaml');
  } catch (error) {
    if (error instanceof PolicyFileError) return error.problems;
    throw error;
  }
  t.fail('the file was accepted');
  return [];
}

t.test('the file without its changes is valid, and each case has a name of its own', async (t) => {
  t.equal(loadPolicies(UNCHANGED, 'policies.yaml').policies.length, 1);
  t.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length);
});

for (const { name, file, mistakes } of CASES) {
  t.test(`${name}: refused with line, column and fix`, async (t) => {
    const problems = problemsOf(t, file);
    t.ok(problems.length > 0);
    t.equal(problems.length, mistakes.length, 'only the mistakes themselves, no consequences of them');
    for (const [i, { at, mention }] of mistakes.entries()) {
      const problem = problems[i];
      t.ok(problem?.fix, 'the mistake has a fix');
      const message = `${problem?.message}; ${problem?.fix}`;
      t.equal(`${problem?.line}:${problem?.column}`, at, message);
      t.not(mention, '', 'the expectation says something');
      t.ok(message.includes(mention), `${message} (must mention: ${mention})`);
    }
  });
}

t.test('the error has the format of compilers: file, line, column', async (t) => {
  const text = VALID.replace('limit: 5', 'limit: 0');
  t.throws(() => loadPolicies(text, 'edge/policies.yaml'), {
    name: 'PolicyFileError',
    file: 'edge/policies.yaml',
    message:
      'edge/policies.yaml:8:12: limit is 0; expected: requests per window, a whole number from 1 to 1000000000',
  });
});

t.test('does not parse a file over 1 MiB', async (t) => {
  const problems = problemsOf(t, `${VALID}#${'x'.repeat(1_048_576)}`);
  t.match(problems, [{ line: 1, column: 1, message: /at most 1 MiB/ }]);
});

t.test('refuses endless brackets without a crash', async (t) => {
  // This text is not a fixture file, because linters overflow on it.
  const problems = problemsOf(t, '['.repeat(4000));
  t.match(problems, [{ line: 1, message: /brackets are nested too deeply/, fix: 'close them' }]);
});

t.test('refuses a file full of aliases in linear time', async (t) => {
  const problems = problemsOf(t, `version: &v 1\npolicies: [${'*v, '.repeat(100_000)}]\n`);
  t.match(problems, [{ line: 2, column: 12, message: /expand to too many values/ }]);
});

t.test('names a NUL, which is valid UTF-8', async (t) => {
  t.match(problemsOf(t, 'version: 1\npolicies: [\0]\n'), [
    { line: 2, column: 12, message: 'a NUL character', fix: /^remove it, or save the file in UTF-8/ },
  ]);
});

const VALID = `version: 1
identifiers:
  ip: { source: client-address }
policies:
  - name: items
    route: POST /api/items
    identifier: ip
    limit: 5
    window: 1m
`;

t.test('accepts comments, anchors, flow style, JSON, CRLF and a byte order mark', async (t) => {
  const written = [
    `# a comment\n${VALID}    # another one\n`,
    `\ufeff${VALID.replaceAll('\n', '\r\n')}`,
    `version: 1
identifiers: { ip: &everybody { source: client-address } }
policies: [{ name: items, route: POST /api/items, identifier: ip, limit: 5, window: 1m }]
`,
    JSON.stringify({
      version: 1,
      identifiers: { ip: { source: 'client-address' } },
      policies: [{ name: 'items', route: 'POST /api/items', identifier: 'ip', limit: 5, window: '1m' }],
    }),
  ];
  const [expected] = loadPolicies(VALID, 'f').policies;
  for (const text of written)
    t.strictSame(
      { ...loadPolicies(text, 'f').policies[0], line: 5 },
      expected,
      JSON.stringify(text.slice(0, 20)),
    );
});

t.test('windows are whole seconds', async (t) => {
  const cases = { '1s': 1, '90s': 90, '1m': 60, '60m': 3600, '1h': 3600, '1d': 86_400, '366d': 31_622_400 };
  for (const [window, seconds] of Object.entries(cases)) {
    const [policy] = loadPolicies(VALID.replace('1m', window), 'f').policies;
    t.equal(policy?.windowSeconds, seconds, window);
    t.equal(policy?.windowMs, seconds * 1000, window);
  }
});

t.test('a file without policies limits nothing, and an exclusion may leave part of a route', async (t) => {
  t.strictSame(loadPolicies(VALID.replace(/policies:.*/s, 'policies: []'), 'f').policies, []);
  const partly = VALID.replace('policies:', 'exclude: [POST /api/items/*, GET /api/*]\npolicies:').replace(
    'POST /api/items\n',
    'GET,POST /api/*\n',
  );
  t.equal(loadPolicies(partly, 'f').policies.length, 1);
});

t.test('several limits of a row become policies that differ only in the limit', async (t) => {
  const { policies } = loadPolicies(
    `version: 1
plan: { header: x-plan }
identifiers:
  ip: { source: client-address }
policies:
  - name: items
    route: GET /items
    identifier: ip
    rollout: 40%
    mode: shadow
    cost: 2
    bucket: shared
    limits:
      - { limit: 10, window: 1s, algorithm: token-bucket, burst: 4 }
      - { limit: 100, window: 1m, overrides: [{ for: { plan: gold }, limit: 300 }] }
      - { concurrency: 5 }
  - { name: last, route: GET /last, identifier: ip, concurrency: 7, overrides: [{ for: { plan: gold }, limit: 30 }] }
`,
    'p.yaml',
  );
  const told = policies.map(({ cost, overrides, ...of }) =>
    [
      ...[of.name, of.index, of.line, of.bucket, of.limit, of.capacity, of.algorithm, of.windowSeconds],
      ...[cost.kind === 'units' ? cost.units : cost.kind, of.mode, overrides?.clients.plans.get('gold')],
    ].join(' '),
  );
  t.strictSame(told, [
    'items.1s 0 14 shared.1s 10 4 token-bucket 1 2 shadow ',
    'items.1m 1 15 shared.1m 100 100 fixed-window 60 2 shadow 300',
    'items.concurrency 2 16 shared.concurrency 5 5 concurrency 0 1 shadow ',
    'last 3 17 last 7 7 concurrency 0 1 enforce 30',
  ]);
  const [first, second] = policies.map(({ rollout }) => rollout);
  t.strictSame(first, second, 'the identifiers are equal');
});

t.test('deny has at most 1,000 routes', (t) => {
  const text = (routes: number): string =>
    `version: 1
identifiers: { ip: { source: client-address } }
deny: [${Array.from({ length: routes }, (_, i) => `{ route: GET /${i} }`).join(', ')}]
policies: []
`;
  t.equal(loadPolicies(text(1000), 'p.yaml').lists?.routes.length, 1000);
  t.throws(() => loadPolicies(text(1001), 'p.yaml'), { message: /deny has more than 1000 routes/ });
  t.end();
});
