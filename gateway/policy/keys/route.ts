import { attempt, type Path, type Report } from '#gateway/policy/problems.ts';
import { parseRoute, type Route } from '#gateway/policy/route.ts';
import { policyKey } from './key.ts';
import { route as routeText } from './schema-parts.ts';

/** Methods that get 405 before policies are matched. */
const NEVER_SERVED: ReadonlySet<string> = new Set(['CONNECT', 'TRACE']);

export const route = policyKey({
  schema: routeText('METHODS PATH, such as POST /api/items or GET,PUT /api/items/*'),
  more: 'See [Routes](policies.md#routes)',
  warn({ route: { methods, text } }) {
    if (methods === null || ![...methods].every((method) => NEVER_SERVED.has(method))) return null;
    return [
      `${text} matches no request: the gateway answers CONNECT and TRACE with 405`,
      'name another method, or remove the policy',
    ];
  },
});

/** @returns null if there is a mistake, which is reported */
export function readRoute(text: string, ignoreCase: boolean, here: Path, report: Report): Route | null {
  return attempt(report, here, () => parseRoute(text, ignoreCase));
}
