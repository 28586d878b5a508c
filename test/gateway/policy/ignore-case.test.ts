/** Tests a policy file for an application that ignores case in paths, such as one on Express or ASP.NET. */
import t from 'tap';
import { spellingsOf } from '#gateway/operate/admin/spellings.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';

function textOf(ignoreCase: string, routes: readonly string[], exclude: readonly string[] = []): string {
  const rows = routes.map((route, i) => {
    const identifier = route.includes('{user}') ? 'path.user' : 'ip';
    return `  - { name: p${i}, route: "${route}", identifier: ${identifier}, limit: 1, window: 1m }\n`;
  });
  return `version: 1
${ignoreCase}identifiers:
  ip: { source: client-address }
exclude: ${JSON.stringify(exclude)}
policies:
${rows.join('')}`;
}

const rehearsalOf = (set: PolicySet) => new Rehearsal(set, { clock: () => 0 });
const request = (target: string) => requestOf(`GET ${target}`, [], '192.0.2.1');

const load = (routes: readonly string[], exclude?: readonly string[], ignoreCase = 'ignoreCase: true\n') =>
  loadPolicies(textOf(ignoreCase, routes, exclude), 'p.yaml');

function matched(set: PolicySet, target: string): string {
  const result = createMatcher(set)('GET', target);
  return result.ok ? `${(result.cover?.policies ?? []).map(({ name }) => name)} ${result.target}` : '400';
}

t.test('matches a path in any case, and forwards it as it was sent', async (t) => {
  const cases: readonly (readonly [route: string, target: string, isMatched: boolean])[] = [
    ['GET /login', '/LOGIN', true],
    ['GET /Login', '/login', true],
    ['GET /login', '/lOgIn?Next=/A', true],
    ['GET /a/{id}/b', '/A/X/B', true],
    ['GET /a/*', '/A/b/c', true],
    ['GET /caf%C3%A9', '/CAF%C3%89', true],
    ['GET /%CF%83', '/%CF%82', true],
    ['GET /login', '/LOGIN;x', true],
    ['GET /login', '/logins', false],
    ['GET /caf%C3%A9', '/cafe', false],
  ];
  for (const [route, target, isMatched] of cases) {
    t.equal(matched(load([route]), target), `${isMatched ? 'p0' : ''} ${target}`, `${route} and ${target}`);
    const upper = target !== target.toLowerCase();
    const exact = load([route], [], '');
    if (upper) t.equal(matched(exact, target), ` ${target}`, `${target} where case matters`);
  }
  t.equal(matched(load(['GET /login'], [], 'ignoreCase: false\n'), '/LOGIN'), ' /LOGIN');
});

t.test('explain gives the reason, and doctor does not test the case', async (t) => {
  const set = load(['GET /login', 'GET /other']);
  const explained = await explain(set, rehearsalOf(set), request('/LOGIN'));
  t.match(explained, {
    decision: 'allow',
    path: '/LOGIN',
    policies: [{ matched: true }, { matched: false }],
  });
  t.match(explained.policies[1]?.reason, 'the path is not /other');
  const others = (of: PolicySet): string[] => spellingsOf(of).map(({ other }) => other);
  t.strictSame(others(set), ['/login.json', '/other.json']);
  const caseful = load(['GET /login', 'GET /{id}/x/*', 'GET /y/*', 'GET /y/{id}', 'GET /'], [], '');
  t.strictSame(others(caseful), [
    '/LOGIN',
    '/login.json',
    '/doctor/X',
    '/doctor/x.json',
    '/Y',
    '/y.json',
    '/Y/doctor',
  ]);
});
