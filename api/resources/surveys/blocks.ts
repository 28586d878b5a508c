/**
 * Questions and blocks are two views of one survey. Blocks are stored. A question becomes a block with its id, which gets
 * the labels of its buttons and its logic. In the other direction, the last question of a block gets them back.
 */
import { isRecord, picked } from '#api/values/schemas.ts';
import type { Block } from './schema.ts';

type Fields = Record<string, unknown>;

/** The fields of a question that its block stores. */
const blockFields = ['buttonLabel', 'backButtonLabel', 'logic', 'logicFallback'];

export function toBlocks(questions: readonly Fields[]): Fields[] {
  return questions.map((question, i) => {
    const own = picked(question, blockFields);
    const element = Object.fromEntries(Object.entries(question).filter(([name]) => !(name in own)));
    const name = `Block ${i + 1}`;
    return {
      id: question.id,
      name,
      elements: [element],
      ...withJumps(own, 'jumpToBlock', (target) => target),
    };
  });
}

export function toQuestions(blocks: readonly Block[]): Fields[] {
  const firstOf = new Map<unknown, string>(
    blocks.flatMap(({ id, elements }) => elements.slice(0, 1).map((first) => [id, first.id])),
  );
  return blocks.flatMap((block) => {
    const own = withJumps(
      picked<Fields, string>(block, blockFields),
      'jumpToQuestion',
      (target) => firstOf.get(target) ?? target,
    );
    const last = block.elements.length - 1;
    return block.elements.map((element, i) => (i === last ? { ...element, ...own } : element));
  });
}

/** Converts the targets of jumps and fallbacks. Ids of endings stay the same, and logic of another shape. */
function withJumps(fields: Fields, objective: string, targetOf: (target: unknown) => unknown): Fields {
  const action = (one: unknown): unknown =>
    isRecord(one) && (one.objective === 'jumpToQuestion' || one.objective === 'jumpToBlock')
      ? { ...one, objective, target: targetOf(one.target) }
      : one;
  const rule = (one: unknown): unknown =>
    isRecord(one) && Array.isArray(one.actions) ? { ...one, actions: one.actions.map(action) } : one;
  const { logic, logicFallback } = fields;
  return {
    ...fields,
    ...(Array.isArray(logic) ? { logic: logic.map(rule) } : {}),
    ...(logicFallback === undefined ? {} : { logicFallback: targetOf(logicFallback) }),
  };
}
