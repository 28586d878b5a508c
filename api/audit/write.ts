/** Derives the action and the target of an audit entry from the method and the route of a write. Pure. */

export interface Written {
  readonly action: 'created' | 'updated' | 'deleted';
  readonly targetType: string;
  /** The path parameter with the target's id; null if the reply has it. */
  readonly param: string | null;
}

/** Types of objects, by the last segment of a path that names a resource. */
const types: Readonly<Record<string, string>> = {
  people: 'contact',
  'attribute-classes': 'contactAttributeKey',
  'action-classes': 'actionClass',
  storage: 'file',
  'link-emails': 'surveyLink',
  email: 'user',
};

/** The path parameter of the target, for objects that have no id of their own. */
const parents: Readonly<Record<string, string>> = { 'link-emails': 'surveyId' };

/** This route answers a POST, and writes nothing. */
const NOTHING_WRITTEN = '/api/v1/license/recheck';

const actions: Readonly<Record<string, Written['action']>> = {
  POST: 'created',
  PUT: 'updated',
  PATCH: 'updated',
  DELETE: 'deleted',
};

/**
 * @param route the router's pattern, such as `/api/v1/management/surveys/:surveyId`
 * @returns null if the request does not write
 */
export function writtenBy(method: string, route: string): Written | null {
  const action = actions[method];
  if (action === undefined || route === NOTHING_WRITTEN) return null;
  const parts = route.split('/').filter((part) => part !== '');
  const named = parts.findLast((part) => !part.startsWith(':')) ?? '';
  const end = parts.at(-1) ?? '';
  return {
    action,
    targetType: types[named] ?? camelCase(singular(named)),
    param: end.startsWith(':') ? end.slice(1) : (parents[named] ?? null),
  };
}

function singular(word: string): string {
  return word.endsWith('s') ? word.slice(0, -1) : word;
}

/** Turns `contact-attribute-key` into `contactAttributeKey`. */
function camelCase(words: string): string {
  return words.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
