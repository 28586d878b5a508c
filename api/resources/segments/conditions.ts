/**
 * Compiles one filter of a segment into a condition: its root, operator and value are checked once, and the rest is a
 * function of the profile. Pure.
 */
import { isRecord } from '#api/values/schemas.ts';
import type { AnsweredSurvey, ContactProfile, SeenSurvey } from './contact-profile.ts';
import { attributeOperators, type InvalidValue, readSpan, type Test, textOperators } from './operators.ts';
import { before } from './time.ts';

/**
 * Whether the contact is in another segment.
 *
 * @returns null if this cannot be decided: there is no such segment, or its filters are invalid
 */
type IsIn = (segmentId: string) => boolean | null;

export type Condition = (profile: ContactProfile, isIn: IsIn) => boolean;

export interface Compiled {
  readonly condition: Condition;
  /** Ids of segments that the condition depends on. */
  readonly references: readonly string[];
}

/** A problem, by its path within the filter. */
export interface InvalidFilter {
  readonly issues: Readonly<Record<string, string>>;
}

const SURVEYS_MAX = 100;
const devices: readonly unknown[] = ['phone', 'desktop'];

/** @param resource `{id, root, value, qualifier: {operator}}` */
export function compileFilter(resource: Readonly<Record<string, unknown>>): Compiled | InvalidFilter {
  const { root, value, qualifier } = resource;
  if (!isRecord(root)) return invalid('root', 'must be object');
  const operator = isRecord(qualifier) ? qualifier.operator : undefined;
  if (typeof operator !== 'string') return invalid('qualifier.operator', 'must be string');
  switch (root.type) {
    case 'attribute': {
      // Segments from before attribute keys have the older name of the field.
      const key = root.contactAttributeKey ?? root.attributeClassName;
      if (typeof key !== 'string') return invalid('root.contactAttributeKey', 'must be string');
      return tested(attributeOperators, operator, value, (profile) =>
        Object.hasOwn(profile.attributes, key) ? profile.attributes[key] : undefined,
      );
    }
    case 'person':
      if (root.personIdentifier !== 'userId') return invalid('root.personIdentifier', 'must be userId');
      return tested(textOperators, operator, value, (profile) => profile.userId ?? undefined);
    case 'segment':
      return compileSegment(operator, value ?? root.segmentId);
    case 'device':
      return compileDevice(operator, value ?? root.deviceType);
    case 'surveyInteraction':
      return compileInteraction(operator, value);
    default:
      return invalid('root.type', 'must be one of attribute, person, segment, device, surveyInteraction');
  }
}

function tested(
  operators: Readonly<Record<string, (value: unknown) => Test | InvalidValue>>,
  operator: string,
  value: unknown,
  given: (profile: ContactProfile) => string | undefined,
): Compiled | InvalidFilter {
  const make = Object.hasOwn(operators, operator) ? operators[operator] : undefined;
  if (make === undefined) return unknownOperator(Object.keys(operators));
  const test = make(value);
  if (typeof test !== 'function') return invalid('value', `must be ${test.expected} for this operator`);
  return plain((profile) => test(given(profile), profile.now));
}

/** Compiles a condition on another segment. If that segment cannot be decided, both operators are false. */
function compileSegment(operator: string, value: unknown): Compiled | InvalidFilter {
  if (operator !== 'userIsIn' && operator !== 'userIsNotIn') {
    return unknownOperator(['userIsIn', 'userIsNotIn']);
  }
  if (typeof value !== 'string') return invalid('value', 'must be the id of a segment');
  const expected = operator === 'userIsIn';
  return { condition: (_profile, isIn) => isIn(value) === expected, references: [value] };
}

function compileDevice(operator: string, value: unknown): Compiled | InvalidFilter {
  if (operator !== 'equals' && operator !== 'notEquals') return unknownOperator(['equals', 'notEquals']);
  if (!devices.includes(value)) return invalid('value', `must be one of ${devices.join(', ')}`);
  return plain(({ device }) => (device === value) === (operator === 'equals'));
}

const interactions: Readonly<Record<string, (profile: ContactProfile) => readonly SeenSurvey[]>> = {
  haveSeen: ({ displays }) => displays,
  haveStartedRespondingTo: ({ responses }) => responses,
  haveCompleted: ({ responses }) => responses.filter(({ finished }) => finished).map(atItsEnd),
};
const opposites: Readonly<Record<string, string>> = {
  haveNotSeen: 'haveSeen',
  haveNotCompleted: 'haveCompleted',
};

function atItsEnd({ surveyId, updatedAt }: AnsweredSurvey): SeenSurvey {
  return { surveyId, createdAt: updatedAt };
}

function compileInteraction(operator: string, value: unknown): Compiled | InvalidFilter {
  const isOpposite = Object.hasOwn(opposites, operator);
  const name = isOpposite ? (opposites[operator] ?? operator) : operator;
  const interaction = Object.hasOwn(interactions, name) ? interactions[name] : undefined;
  if (interaction === undefined) {
    return unknownOperator([...Object.keys(interactions), ...Object.keys(opposites)]);
  }
  if (!isRecord(value)) return invalid('value', 'must be object');
  const { surveyScope, surveyIds = [], within = null } = value;
  if (surveyScope !== 'any' && surveyScope !== 'specific') {
    return invalid('value.surveyScope', 'must be one of any, specific');
  }
  if (!isIdList(surveyIds)) {
    return invalid('value.surveyIds', `must be an array of up to ${SURVEYS_MAX} survey ids`);
  }
  const span = within === null ? null : readSpan(within);
  // Years are allowed only for attributes.
  if (within !== null && (span === null || span.unit === 'years')) {
    return invalid('value.within', 'must be {amount: 1 to 999, unit: days, weeks, months}');
  }
  const chosen = new Set(surveyIds);
  const condition: Condition = (profile) => {
    const from = span === null ? Number.NEGATIVE_INFINITY : before(profile.now, span);
    const happened = interaction(profile).some(
      ({ surveyId, createdAt }) =>
        (surveyScope === 'any' || chosen.has(surveyId)) && Date.parse(createdAt) >= from,
    );
    return happened !== isOpposite;
  };
  return plain(condition);
}

function isIdList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= SURVEYS_MAX && value.every((id) => typeof id === 'string');
}

function plain(condition: Condition): Compiled {
  return { condition, references: [] };
}

function invalid(path: string, text: string): InvalidFilter {
  return { issues: { [path]: text } };
}

function unknownOperator(known: readonly string[]): InvalidFilter {
  return invalid('qualifier.operator', `must be one of ${known.join(', ')}`);
}
