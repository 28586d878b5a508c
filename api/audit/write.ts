/** What a request that writes does, in the words of the audit log: read off its method and route. Pure. */

export interface Written {
  readonly action: 'created' | 'updated' | 'deleted' | 'bulkCreated' | 'merged';
  readonly targetType: string;
  /** The name of the parameter that names the target; null: the reply does. */
  readonly param: string | null;
}

/** By the last word of a path that names things. */
const types: Readonly<Record<string, string>> = {
  people: 'contact',
  'attribute-classes': 'contactAttributeKey',
  'action-classes': 'actionClass',
  deliveries: 'delivery',
  storage: 'file',
  'link-emails': 'surveyLink',
  email: 'user',
};

/** A step at the end of a path that is done to what stands before it. null: nothing is written. */
const steps: Readonly<Record<string, Written['action'] | null>> = {
  bulk: 'bulkCreated',
  merge: 'merged',
  archive: 'updated',
  restore: 'updated',
  redeliver: 'updated',
  resend: 'updated',
  test: null,
  validate: null,
  generate: null,
  recheck: null,
};

const actions: Readonly<Record<string, Written['action']>> = {
  POST: 'created',
  PUT: 'updated',
  PATCH: 'updated',
  DELETE: 'deleted',
};

/** @param route as the router writes it: `/api/v1/management/surveys/:surveyId` @returns null: not a write */
export function writtenBy(method: string, route: string): Written | null {
  const action = actions[method];
  if (action === undefined) return null;
  const parts = route.split('/').filter((part) => part !== '');
  const last = parts.at(-1) ?? '';
  const step = Object.hasOwn(steps, last) ? (steps[last] ?? null) : undefined;
  if (step === null) return null;
  const path = step === undefined ? parts : parts.slice(0, -1);
  const named = path.findLast((part) => !part.startsWith(':')) ?? '';
  // Who is in a team, and what it gives: changes of the team.
  const isPartOfTeam = path.includes(':teamId') && named !== 'teams';
  if (isPartOfTeam) return { action: 'updated', targetType: 'team', param: 'teamId' };
  const end = path.at(-1) ?? '';
  return {
    action: step ?? action,
    targetType: types[named] ?? camelCase(singular(named)),
    param: end.startsWith(':') ? end.slice(1) : null,
  };
}

function singular(word: string): string {
  return word.endsWith('s') ? word.slice(0, -1) : word;
}

/** `contact-attribute-key` -> `contactAttributeKey` */
function camelCase(words: string): string {
  return words.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
