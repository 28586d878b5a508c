import t from 'tap';
import { toBlocks, toQuestions } from '#api/resources/surveys/blocks.ts';

function ids(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `b${count}`;
  };
}

const jump = (objective: string, target: string) => [
  {
    id: 'l',
    conditions: { id: 'c' },
    actions: [
      { id: 'a', objective, target },
      { objective: 'requireAnswer', target },
    ],
  },
];

t.test('a question becomes a block, its logic points to blocks, and back again', async (t) => {
  const questions = [
    {
      id: 'q1',
      type: 'nps',
      buttonLabel: { default: 'Next' },
      backButtonLabel: { default: 'Back' },
      logic: jump('jumpToQuestion', 'q2'),
      logicFallback: 'end1',
    },
    { id: 'q2', type: 'nps', logicFallback: 'q1' },
  ];
  const blocks = toBlocks(questions, [], ids());
  t.strictSame(blocks, [
    {
      id: 'b1',
      name: 'Block 1',
      elements: [{ id: 'q1', type: 'nps' }],
      buttonLabel: { default: 'Next' },
      backButtonLabel: { default: 'Back' },
      logic: [
        {
          id: 'l',
          conditions: { id: 'c' },
          actions: [
            { id: 'a', objective: 'jumpToBlock', target: 'b2' },
            { objective: 'requireAnswer', target: 'q2' },
          ],
        },
      ],
      logicFallback: 'end1',
    },
    { id: 'b2', name: 'Block 2', elements: [{ id: 'q2', type: 'nps' }], logicFallback: 'b1' },
  ]);
  t.strictSame(
    toQuestions([
      { ...blocks[0], id: 'b1', elements: [{ id: 'q1', type: 'nps' }] },
      { ...blocks[1], id: 'b2', elements: [{ id: 'q2', type: 'nps' }] },
    ]),
    questions,
  );
});

t.test('a question that stays keeps the id of its block', async (t) => {
  const blocks = toBlocks([{ id: 'new' }, { id: 'q1' }], [{ id: 'old', elements: [{ id: 'q1' }] }], ids());
  t.strictSame(
    blocks.map(({ id }) => id),
    ['b1', 'old'],
  );
});

t.test('a block with several questions: the last one gets its labels and its logic', async (t) => {
  const block = {
    id: 'b1',
    elements: [{ id: 'q1' }, { id: 'q2' }],
    buttonLabel: { default: 'Next' },
    logic: jump('jumpToBlock', 'b1'),
  };
  t.strictSame(toQuestions([block]), [
    { id: 'q1' },
    {
      id: 'q2',
      buttonLabel: { default: 'Next' },
      logic: jump('jumpToQuestion', 'q1').map((rule) => ({
        ...rule,
        actions: [rule.actions[0], { objective: 'requireAnswer', target: 'b1' }],
      })),
    },
  ]);
});

t.test('logic of another shape is kept as it is', async (t) => {
  const odd = [1, null, { actions: 'x' }, { actions: [null, { objective: 'jumpToQuestion', target: 5 }] }];
  const [block] = toBlocks([{ id: 'q1', logic: odd }], [], ids());
  t.strictSame(block?.logic, [
    1,
    null,
    { actions: 'x' },
    { actions: [null, { objective: 'jumpToBlock', target: 5 }] },
  ]);
});
