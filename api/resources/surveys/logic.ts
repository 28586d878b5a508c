/**
 * The logic of blocks: conditions on answers, variables and hidden fields, and the actions that follow. Clients
 * evaluate it. This file checks its shape and its references. Pure.
 */
import { Type } from 'typebox';
import { checker } from '#api/http/validation.ts';
import { isRecord, MapOf, OneOf } from '#api/values/schemas.ts';
import type { Findings } from './findings.ts';
import type { SurveyContent } from './schema.ts';

const Operand = Type.Object({
  type: OneOf(['element', 'variable', 'hiddenField']),
  value: Type.String(),
});
const Value = Type.Object({
  type: OneOf(['static', 'element', 'variable', 'hiddenField']),
  value: Type.Union([Type.String(), Type.Number(), Type.Array(Type.String())]),
});

const operators = [
  'equals',
  'doesNotEqual',
  'contains',
  'doesNotContain',
  'startsWith',
  'doesNotStartWith',
  'endsWith',
  'doesNotEndWith',
  'isSubmitted',
  'isSkipped',
  'isGreaterThan',
  'isLessThan',
  'isGreaterThanOrEqual',
  'isLessThanOrEqual',
  'equalsOneOf',
  'includesAllOf',
  'includesOneOf',
  'doesNotIncludeOneOf',
  'doesNotIncludeAllOf',
  'isClicked',
  'isNotClicked',
  'isAccepted',
  'isBefore',
  'isAfter',
  'isBooked',
  'isPartiallySubmitted',
  'isCompletelySubmitted',
  'isSet',
  'isNotSet',
  'isEmpty',
  'isNotEmpty',
  'isAnyOf',
];

const Rule = Type.Object({
  id: Type.String({ minLength: 1 }),
  /** Groups may be nested, so they are checked separately. */
  conditions: MapOf(Type.Unknown()),
  actions: Type.Array(MapOf(Type.Unknown())),
});
const Group = Type.Object({ connector: OneOf(['and', 'or']), conditions: Type.Array(MapOf(Type.Unknown())) });
const Condition = Type.Object({
  leftOperand: Operand,
  operator: OneOf(operators),
  rightOperand: Type.Optional(Value),
});

const Calculation = Type.Object({
  variableId: Type.String(),
  operator: OneOf(['assign', 'concat', 'add', 'subtract', 'multiply', 'divide']),
  value: Value,
});
const Target = Type.Object({ target: Type.String() });
const objectives = ['calculate', 'requireAnswer', 'jumpToBlock'];

const ruleChecker = checker(Rule);
const groupChecker = checker(Group);
const conditionChecker = checker(Condition);
const calculationChecker = checker(Calculation);
const targetChecker = checker(Target);

/** @param findings receives parts without the shape of v3 */
export function checkLogicShape(logic: unknown, path: string, findings: Findings): void {
  if (!Array.isArray(logic)) return;
  logic.forEach((rule: unknown, i) => {
    if (findings.isFull()) return;
    const at = `${path}.${i}`;
    if (!ruleChecker.is(rule)) {
      findings.addAll(ruleChecker.issues(rule, at));
      return;
    }
    eachCondition(rule.conditions, `${at}.conditions`, (node, where) => {
      if (findings.isFull()) return;
      const isGroup = 'connector' in node || 'conditions' in node;
      findings.addAll((isGroup ? groupChecker : conditionChecker).issues(node, where));
    });
    rule.actions.forEach((action, a) => {
      if (!findings.isFull()) checkAction(action, `${at}.actions.${a}`, findings);
    });
  });
}

function checkAction(action: Readonly<Record<string, unknown>>, path: string, findings: Findings): void {
  const { objective } = action;
  if (objective === 'calculate') findings.addAll(calculationChecker.issues(action, path));
  else if (objective === 'requireAnswer' || objective === 'jumpToBlock') {
    findings.addAll(targetChecker.issues(action, path));
  } else findings.add(`${path}.objective`, `must be one of ${objectives.join(', ')}`);
}

interface Known {
  readonly element: ReadonlySet<string>;
  readonly variable: ReadonlySet<string>;
  readonly hiddenField: ReadonlySet<string>;
  readonly block: ReadonlySet<string>;
}

/** @param findings receives references to missing targets; parts without the shape of logic are ignored */
export function checkLogicReferences(content: SurveyContent, findings: Findings): void {
  const known: Known = {
    element: new Set(content.blocks.flatMap(({ elements }) => elements.map(({ id }) => id))),
    variable: new Set(content.variables.map(({ id }) => id)),
    hiddenField: new Set(content.hiddenFields.fieldIds ?? []),
    // A survey may jump to its end.
    block: new Set([...content.blocks, ...content.endings].map(({ id }) => id)),
  };
  const look = (referenceType: keyof Known, missingId: string, path: string): void => {
    if (known[referenceType].has(missingId)) return;
    const name = referenceType === 'block' ? 'block or ending' : referenceType;
    const reason = `There is no ${name} "${missingId.slice(0, 255)}" in this survey`;
    findings.add(path, { reason, code: 'dangling_reference', referenceType, missingId });
  };
  const lookAt = (operand: unknown, path: string): void => {
    if (!isRecord(operand) || typeof operand.value !== 'string') return;
    const { type, value } = operand;
    if (type === 'element' || type === 'variable' || type === 'hiddenField')
      look(type, value, `${path}.value`);
  };
  content.blocks.forEach(({ logic = [], logicFallback }, b) => {
    if (logicFallback !== undefined) look('block', logicFallback, `blocks.${b}.logicFallback`);
    logic.forEach((rule, i) => {
      const at = `blocks.${b}.logic.${i}`;
      eachCondition(rule.conditions, `${at}.conditions`, (node, where) => {
        lookAt(node.leftOperand, `${where}.leftOperand`);
        lookAt(node.rightOperand, `${where}.rightOperand`);
      });
      if (!Array.isArray(rule.actions)) return;
      rule.actions.forEach((action: unknown, a) => {
        if (!isRecord(action)) return;
        const { objective, target, variableId } = action;
        const where = `${at}.actions.${a}`;
        if (typeof variableId === 'string') look('variable', variableId, `${where}.variableId`);
        lookAt(action.value, `${where}.value`);
        if (typeof target !== 'string') return;
        if (objective === 'jumpToBlock') look('block', target, `${where}.target`);
        if (objective === 'requireAnswer') look('element', target, `${where}.target`);
      });
    });
  });
}

/** Yields the group itself, and all conditions in it. The depth of bodies is bounded. */
function eachCondition(
  node: unknown,
  path: string,
  visit: (node: Readonly<Record<string, unknown>>, path: string) => void,
): void {
  if (!isRecord(node)) return;
  visit(node, path);
  if (!Array.isArray(node.conditions)) return;
  node.conditions.forEach((child: unknown, i) => {
    eachCondition(child, `${path}.conditions.${i}`, visit);
  });
}

/** Converts logic to v3. Older versions write question instead of element. */
export function withElements(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withElements);
  if (!isRecord(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, withElements(child)]));
  return copy.type === 'question' && 'value' in copy ? { ...copy, type: 'element' } : copy;
}
