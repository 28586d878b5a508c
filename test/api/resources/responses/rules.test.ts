import t from 'tap';
import { brokenRule, newPatternBudget } from '#api/resources/responses/rules.ts';
import type { Answer } from '#api/resources/responses/schema.ts';
import type { Element } from '#api/resources/surveys/question-types.ts';
import type { Rule } from '#api/resources/surveys/validation-rules.ts';
import { ANSWER_LENGTH_MAX } from '#api/values/content-limits.ts';

const headline = { default: 'Q' };
const choices = ['a', 'b', 'c'].map((id) => ({ id, label: { default: id } }));
const text: Element = {
  id: 'q',
  type: 'openText',
  headline,
  required: true,
  inputType: 'text',
  charLimit: { enabled: false },
};
const ranking: Element = { id: 'q', type: 'ranking', headline, required: true, choices };
const matrix: Element = {
  id: 'q',
  type: 'matrix',
  headline,
  required: true,
  rows: choices,
  columns: choices,
};

/** Each row has a rule, answers that keep it, and answers that break it. */
const cases: readonly (readonly [
  rule: Rule,
  holds: readonly Answer[],
  breaks: readonly Answer[],
  element?: Element,
])[] = [
  [{ id: 'r', type: 'minLength', params: { min: 2 } }, ['ab', ['x']], ['a']],
  [{ id: 'r', type: 'maxLength', params: { max: 2 } }, ['ab'], ['abc']],
  [{ id: 'r', type: 'pattern', params: { pattern: '^[a-z]+$', flags: 'gi' } }, ['aB', 'cD'], ['a1']],
  [{ id: 'r', type: 'email', params: {} }, ['a@b.c'], ['a@b', 'a b@c.d']],
  [{ id: 'r', type: 'url', params: {} }, ['https://x.example'], ['x.example']],
  [{ id: 'r', type: 'phone', params: {} }, ['+41 (44) 123-45.67'], ['call me', '123']],
  [{ id: 'r', type: 'equals', params: { value: 7 } }, ['7', 7], ['8']],
  [{ id: 'r', type: 'doesNotEqual', params: { value: 'x' } }, ['y'], ['x']],
  [{ id: 'r', type: 'contains', params: { value: 'x' } }, ['axb'], ['ab']],
  [{ id: 'r', type: 'doesNotContain', params: { value: 'x' } }, ['ab'], ['axb']],
  [{ id: 'r', type: 'minValue', params: { min: 3 } }, [3, '4'], [2, 'two']],
  [{ id: 'r', type: 'maxValue', params: { max: 3 } }, [3, '-1'], [4, 'two']],
  [{ id: 'r', type: 'isGreaterThan', params: { min: 3 } }, [4], [3]],
  [{ id: 'r', type: 'isLessThan', params: { max: 3 } }, [2], [3]],
  [{ id: 'r', type: 'minSelections', params: { min: 2 } }, [['a', 'b']], [['a']]],
  [{ id: 'r', type: 'maxSelections', params: { max: 1 } }, [['a']], [['a', 'b']]],
  [{ id: 'r', type: 'minRanked', params: { min: 2 } }, [['a', 'b']], [['a']], ranking],
  [{ id: 'r', type: 'rankAll', params: {} }, [['a', 'b', 'c']], [['a', 'b']], ranking],
  [
    { id: 'r', type: 'minRowsAnswered', params: { min: 2 } },
    [{ a: 'x', b: 'y' }],
    [{ a: 'x', b: '' }],
    matrix,
  ],
  [{ id: 'r', type: 'answerAllRows', params: {} }, [{ a: 'x', b: 'y', c: 'z' }], [{ a: 'x' }], matrix],
  [{ id: 'r', type: 'isLaterThan', params: { date: '2026-01-01' } }, ['2026-01-02'], ['2026-01-01']],
  [{ id: 'r', type: 'isEarlierThan', params: { date: '2026-01-01' } }, ['2025-12-31'], ['2026-01-01']],
  [
    { id: 'r', type: 'isBetween', params: { startDate: '2026-01-01', endDate: '2026-01-31' } },
    ['2026-01-01', '2026-01-31'],
    ['2026-02-01'],
  ],
  [
    { id: 'r', type: 'isNotBetween', params: { startDate: '2026-01-01', endDate: '2026-01-31' } },
    ['2026-02-01'],
    ['2026-01-31'],
  ],
  [
    { id: 'r', type: 'fileExtensionIs', params: { extensions: ['pdf', '.PNG'] } },
    [['/x/a.PDF', '/x/b.png?x=1']],
    [['/x/a.pdf', '/x/b.gif']],
  ],
  [{ id: 'r', type: 'fileExtensionIsNot', params: { extensions: ['exe'] } }, [['/x/a.pdf']], [['/x/a.exe']]],
];
for (const [rule, holds, breaks, element = text] of cases) {
  t.test(`${rule.type} ${JSON.stringify(rule.params)}`, async (t) => {
    for (const answer of holds)
      t.equal(brokenRule(rule, answer, element, newPatternBudget()), null, JSON.stringify(answer));
    for (const answer of breaks)
      t.type(brokenRule(rule, answer, element, newPatternBudget()), 'string', JSON.stringify(answer));
  });
}

t.test('patterns take linear time, and all of a response share one budget', async (t) => {
  const rule: Rule = { id: 'r', type: 'pattern', params: { pattern: '^(a+)+$' } };
  const budget = newPatternBudget();
  t.equal(brokenRule(rule, `${'a'.repeat(60)}!`, text, budget), 'Does not have the expected format');
  t.equal(brokenRule(rule, 'aaa', text, budget), null, 'the next answer is checked as usual');
  t.equal(brokenRule(rule, 'a'.repeat(ANSWER_LENGTH_MAX), text, budget), null);
  t.type(brokenRule(rule, 'a'.repeat(ANSWER_LENGTH_MAX), text, budget), 'string', 'the budget is used up');
});

t.test('a stored pattern that RE2 does not support is ignored', async (t) => {
  const rule: Rule = { id: 'r', type: 'pattern', params: { pattern: '^(?=a)b' } };
  t.equal(brokenRule(rule, 'x', text, newPatternBudget()), null);
});
