/**
 * One filter of a segment as a condition that can be asked (contract management-api.md §3.11): what it is about (its
 * root), the operator and the value are checked once, and what is left is a function of the facts. Pure.
 */
import { isRecord } from '#api/schemas.ts';
import type { AnsweredSurvey, Facts, SeenSurvey } from './contact-profile.ts';
import { attributeOperators, readSpan, type Test, textOperators, type Unfit } from './operators.ts';
import { before } from './time.ts';

/**
 * Is the contact in another segment?
 *
 * @returns null when nobody can say: there is no such segment, or its filters make no sense
 */
export type IsIn = (segmentId: string) => boolean | null;

export type Condition = (facts: Facts, isIn: IsIn) => boolean;

export interface Compiled {
  readonly condition: Condition;
  /** Segments that the condition asks about. */
  readonly references: readonly string[];
}

/** Path within the filter -> what is wrong there. */
export interface Refused {
  readonly issues: Readonly<Record<string, string>>;
}

const SURVEYS_MAX = 100;
const devices: readonly unknown[] = ['phone', 'desktop'];

/** @param resource `{id, root, value, qualifier: {operator}}` */
export function compileFilter(resource: Readonly<Record<string, unknown>>): Compiled | Refused {
  const { root, value, qualifier } = resource;
  if (!isRecord(root)) return refused('root', 'must be object');
  const operator = isRecord(qualifier) ? qualifier.operator : undefined;
  if (typeof operator !== 'string') return refused('qualifier.operator', 'must be string');
  switch (root.type) {
    case 'attribute': {
      // The older name of the key comes from segments that were made before contacts had attribute keys.
      const key = root.contactAttributeKey ?? root.attributeClassName;
      if (typeof key !== 'string') return refused('root.contactAttributeKey', 'must be string');
      return tested(attributeOperators, operator, value, (facts) =>
        Object.hasOwn(facts.attributes, key) ? facts.attributes[key] : undefined,
      );
    }
    case 'person':
      if (root.personIdentifier !== 'userId') return refused('root.personIdentifier', 'must be userId');
      return tested(textOperators, operator, value, (facts) => facts.userId ?? undefined);
    case 'segment':
      return compileSegment(operator, value ?? root.segmentId);
    case 'device':
      return compileDevice(operator, value ?? root.deviceType);
    case 'surveyInteraction':
      return compileInteraction(operator, value);
    default:
      return refused('root.type', 'must be one of attribute, person, segment, device, surveyInteraction');
  }
}

function tested(
  operators: Readonly<Record<string, (value: unknown) => Test | Unfit>>,
  operator: string,
  value: unknown,
  given: (facts: Facts) => string | undefined,
): Compiled | Refused {
  const make = Object.hasOwn(operators, operator) ? operators[operator] : undefined;
  if (make === undefined) return unknownOperator(Object.keys(operators));
  const test = make(value);
  if (typeof test !== 'function') return refused('value', `must be ${test.expected} for this operator`);
  return plain((facts) => test(given(facts), facts.now));
}

/** A segment that cannot be asked has no members and no others: neither operator holds. */
function compileSegment(operator: string, value: unknown): Compiled | Refused {
  if (operator !== 'userIsIn' && operator !== 'userIsNotIn') {
    return unknownOperator(['userIsIn', 'userIsNotIn']);
  }
  if (typeof value !== 'string') return refused('value', 'must be the id of a segment');
  const expected = operator === 'userIsIn';
  return { condition: (_facts, isIn) => isIn(value) === expected, references: [value] };
}

function compileDevice(operator: string, value: unknown): Compiled | Refused {
  if (operator !== 'equals' && operator !== 'notEquals') return unknownOperator(['equals', 'notEquals']);
  if (!devices.includes(value)) return refused('value', `must be one of ${devices.join(', ')}`);
  return plain(({ device }) => (device === value) === (operator === 'equals'));
}

const interactions: Readonly<Record<string, (facts: Facts) => readonly SeenSurvey[]>> = {
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

function compileInteraction(operator: string, value: unknown): Compiled | Refused {
  const isOpposite = Object.hasOwn(opposites, operator);
  const name = isOpposite ? (opposites[operator] ?? operator) : operator;
  const interaction = Object.hasOwn(interactions, name) ? interactions[name] : undefined;
  if (interaction === undefined) {
    return unknownOperator([...Object.keys(interactions), ...Object.keys(opposites)]);
  }
  if (!isRecord(value)) return refused('value', 'must be object');
  const { surveyScope, surveyIds = [], within = null } = value;
  if (surveyScope !== 'any' && surveyScope !== 'specific') {
    return refused('value.surveyScope', 'must be one of any, specific');
  }
  if (!isIdList(surveyIds)) {
    return refused('value.surveyIds', `must be an array of up to ${SURVEYS_MAX} survey ids`);
  }
  const span = within === null ? null : readSpan(within);
  // Years are for attributes only.
  if (within !== null && (span === null || span.unit === 'years')) {
    return refused('value.within', 'must be {amount: 1 to 999, unit: days, weeks, months}');
  }
  const chosen = new Set(surveyIds);
  return plain((facts) => {
    const from = span === null ? Number.NEGATIVE_INFINITY : before(facts.now, span);
    const happened = interaction(facts).some(
      ({ surveyId, createdAt }) =>
        (surveyScope === 'any' || chosen.has(surveyId)) && Date.parse(createdAt) >= from,
    );
    return happened !== isOpposite;
  });
}

function isIdList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= SURVEYS_MAX && value.every((id) => typeof id === 'string');
}

function plain(condition: Condition): Compiled {
  return { condition, references: [] };
}

function refused(path: string, text: string): Refused {
  return { issues: { [path]: text } };
}

function unknownOperator(known: readonly string[]): Refused {
  return refused('qualifier.operator', `must be one of ${known.join(', ')}`);
}
