/**
 * All keys at the top of the policy file, in the order in which messages and the documentation list them. Their schema
 * validates the file, `policies.schema.json` for editors is generated from it, and its descriptions are the fixes in
 * error messages.
 */
import type { XStatic } from 'typebox/schema';
import { type Calendar, type CalendarUnit, calendarOf, isUnit } from '#gateway/algorithms/calendar.ts';
import { attempt, type Report } from '#gateway/policy/problems.ts';
import { type HostRoute, parseHostRoute } from '#gateway/policy/route.ts';
import { identifiers } from './identifier-keys.ts';
import { type FilePlace, fileKey, propertiesOf } from './key.ts';
import { allow, deny } from './lists.ts';
import { plan, plans } from './plans.ts';
import { policySchema } from './policy-keys.ts';
import { regulars } from './regulars.ts';
import { replies } from './replies.ts';
import { flag, hostList, list, object, route } from './schema-parts.ts';
import { tests } from './tests.ts';

const version = fileKey({ schema: { type: 'number', const: 1, description: 'write version: 1' } });

const exclude = fileKey({
  schema: list(
    {
      anyOf: [
        route('METHODS PATH, such as OPTIONS * or GET /health'),
        object(
          ['route', 'hosts'],
          { route: route('METHODS PATH, such as GET /health'), hosts: hostList('') },
          'a route of some hosts',
        ),
      ],
      description:
        'METHODS PATH, such as OPTIONS * or GET /health, at most 2000 characters; or { route: METHODS PATH, hosts: [HOST] }',
    },
    1000,
    'a list of routes that are never limited',
  ),
  more: 'At most 1,000 [routes](policies.md#routes). An entry can also be `{ route: GET /health, hosts: [shop.example.org] }`, see [Hosts](#hosts)',
  read: (entries, { ignoreCase, report }): readonly HostRoute[] =>
    (entries ?? []).flatMap((entry, i) => {
      const isShort = typeof entry === 'string';
      const { route, hosts } = isShort ? { route: entry, hosts: undefined } : entry;
      const hostReport: Report = (path, ...mistake) => report([i, 'hosts', ...path], ...mistake);
      return (
        attempt(report, isShort ? [i] : [i, 'route'], () =>
          parseHostRoute(route, hosts, ignoreCase, hostReport),
        ) ?? []
      );
    }),
});

const ignoreCase = fileKey({
  schema: flag('true if the application treats /LOGIN like /login; false is the default'),
  default: false,
  see: '#paths',
  read: (ignoreCase) => ignoreCase,
});

const DEFAULT_TIMEZONE = 'UTC';

const timezone = fileKey({
  schema: {
    type: 'string',
    pattern: '^[A-Za-z][A-Za-z0-9_+/-]{0,63}$',
    description: 'the time zone of calendar windows, such as Europe/Berlin; UTC unless given',
  },
  default: DEFAULT_TIMEZONE,
  see: '#calendar-windows',
  read: calendarsOf,
});

const protect = fileKey({
  schema: {
    enum: ['on', 'shadow', 'off', true, false],
    description:
      'on to admit fewer requests at once while the application replies slowly, shadow to only report it, or off (the default)',
  },
  default: 'off',
  see: '#protecting-the-application',
  read: (mode) => (mode === 'shadow' ? mode : mode === 'on' || mode === true ? 'on' : null),
});

const policies = fileKey({
  schema: list(policySchema, 1000, 'a list of policies'),
  more: 'At most 1,000; it may be empty',
});

export const FILE_KEYS = {
  version,
  identifiers,
  exclude,
  ignoreCase,
  timezone,
  protect,
  allow,
  deny,
  plan,
  plans,
  regulars,
  replies,
  policies,
  tests,
} as const;

export const policyFileSchema = {
  ...object(
    ['version', 'identifiers', 'policies'],
    propertiesOf(FILE_KEYS),
    'a policy file has version, identifiers and policies',
  ),
  title: 'Floodgate policies',
} as const;

export type PolicyFile = XStatic<typeof policyFileSchema>;

/** @returns the calendar of a window in the file; null for a window of fixed length */
function calendarsOf(name: string, { report }: FilePlace): (window: string) => Calendar | null {
  // Looking up the default would load the tables of ICU into every process, which takes 8 MB.
  const isKnown = name === DEFAULT_TIMEZONE || isTimezone(name);
  if (!isKnown)
    report(
      [],
      `${name} is not a time zone that this version of Node knows`,
      'write a name of the IANA database, such as Europe/Berlin or UTC',
    );
  const zone = isKnown ? name : DEFAULT_TIMEZONE;
  const calendars = new Map<CalendarUnit, Calendar>();
  return (window) => {
    if (!isUnit(window)) return null;
    const calendar = calendars.get(window) ?? calendarOf(window, zone);
    calendars.set(window, calendar);
    return calendar;
  };
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
