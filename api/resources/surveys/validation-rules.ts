/** The validation rules that a question may set for its answers. */
import { type Static, type TSchema, Type } from 'typebox';
import { type Checker, checker } from '#api/http/validation.ts';
import { MapOf, OneOf } from '#api/values/schemas.ts';
import { compilePattern, PATTERN_REFUSED } from './patterns.ts';

const none = Type.Object({});
const min = Type.Object({ min: Type.Number() });
const max = Type.Object({ max: Type.Number() });
const value = Type.Object({ value: Type.Union([Type.String(), Type.Number()]) });
const date = Type.Object({ date: Type.String() });
const dates = Type.Object({ startDate: Type.String(), endDate: Type.String() });
const extensions = Type.Object({ extensions: Type.Array(Type.String()) });
const pattern = Type.Object({ pattern: Type.String(), flags: Type.Optional(Type.String()) });

const ruleParams = {
  minLength: min,
  maxLength: max,
  pattern,
  email: none,
  url: none,
  phone: none,
  equals: value,
  doesNotEqual: value,
  contains: value,
  doesNotContain: value,
  minValue: min,
  maxValue: max,
  isGreaterThan: min,
  isLessThan: max,
  minSelections: min,
  maxSelections: max,
  minRanked: min,
  rankAll: none,
  minRowsAnswered: min,
  answerAllRows: none,
  isLaterThan: date,
  isEarlierThan: date,
  isBetween: dates,
  isNotBetween: dates,
  fileExtensionIs: extensions,
  fileExtensionIsNot: extensions,
} as const satisfies Record<string, TSchema>;

type RuleType = keyof typeof ruleParams;

const ruleTypes = Object.keys(ruleParams);

export type Rule = {
  [Type in RuleType]: {
    readonly id: string;
    readonly type: Type;
    readonly params: Static<(typeof ruleParams)[Type]>;
    readonly field?: string;
  };
}[RuleType];

const Rules = Type.Object({
  logic: Type.Optional(OneOf(['and', 'or'])),
  rules: Type.Array(
    Type.Object({
      id: Type.String(),
      type: Type.Unsafe<RuleType>({ type: 'string', enum: ruleTypes }),
      params: MapOf(Type.Unknown()),
      field: Type.Optional(Type.String()),
    }),
  ),
});

export interface RuleSet {
  readonly logic?: 'and' | 'or';
  readonly rules: readonly Rule[];
}

/** `rules[].params` can be any value here. `ruleIssues` checks them by type. */
export const ValidationRules = Type.Unsafe<RuleSet>(Rules);

const checkers = new Map<string, Checker<unknown>>(
  Object.entries(ruleParams).map(([type, shape]) => [type, checker(shape)]),
);

/** @returns problems of a rule's parameters by dotted path */
export function ruleIssues(set: RuleSet, path: string): Record<string, string> {
  return Object.assign(
    {},
    ...set.rules.map((rule, i) => ({
      ...checkers.get(rule.type)?.issues(rule.params, `${path}.rules.${i}.params`),
      ...patternIssue(rule, `${path}.rules.${i}.params.pattern`),
    })),
  );
}

function patternIssue(rule: Rule, path: string): Record<string, string> {
  if (rule.type !== 'pattern') return {};
  return compilePattern(rule.params) === null ? { [path]: PATTERN_REFUSED } : {};
}
