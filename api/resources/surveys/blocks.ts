/**
 * Questions and blocks are two views of one survey. Blocks are stored. A question becomes a separate block, which gets
 * the labels of its buttons and its logic. In the other direction, the question gets them back.
 */
import { isRecord } from '#api/values/schemas.ts';

/** The fields of a question that its block stores. */
const blockFields = ['buttonLabel', 'backButtonLabel', 'logic', 'logicFallback'] as const;

interface BlockLike {
  readonly id: string;
  readonly elements: readonly object[];
}

/**
 * @param questions objects, as the caller wrote them
 * @param previous the blocks that they replace; a question that stays keeps the id of its block, so that links to it
 * still work
 */
export function toBlocks(
  questions: readonly Readonly<Record<string, unknown>>[],
  previous: readonly BlockLike[],
  newId: () => string,
): Record<string, unknown>[] {
  const knownIds = new Map(
    previous.flatMap((block) => {
      const only = block.elements.length === 1 ? idOf(block.elements[0]) : null;
      return only === null ? [] : [[only, block.id] as const];
    }),
  );
  const blockIds = questions.map((question) => knownIds.get(String(question.id)) ?? newId());
  const targets = new Map(questions.map((question, i) => [String(question.id), blockIds[i] ?? '']));
  return questions.map((question, i) => {
    const element = Object.fromEntries(Object.entries(question).filter(([name]) => !isBlockField(name)));
    const own = Object.fromEntries(Object.entries(question).filter(([name]) => isBlockField(name)));
    return {
      id: blockIds[i],
      name: `Block ${i + 1}`,
      elements: [element],
      ...retargeted(own, 'jumpToQuestion', 'jumpToBlock', targets),
    };
  });
}

/**
 * Converts blocks to questions. The last question of a block gets the labels of its buttons, and its logic, which runs at
 * the end of the block.
 */
export function toQuestions(blocks: readonly BlockLike[]): Record<string, unknown>[] {
  const targets = new Map(
    blocks.flatMap((block) => {
      const first = idOf(block.elements[0]);
      return first === null ? [] : [[block.id, first] as const];
    }),
  );
  return blocks.flatMap((block) => {
    const own = Object.fromEntries(Object.entries(block).filter(([name]) => isBlockField(name)));
    const onLast = retargeted(own, 'jumpToBlock', 'jumpToQuestion', targets);
    const last = block.elements.length - 1;
    return block.elements.map((element, i) => ({ ...element, ...(i === last ? onLast : {}) }));
  });
}

function isBlockField(name: string): boolean {
  return blockFields.some((field) => field === name);
}

function idOf(element: object | undefined): string | null {
  return isRecord(element) && typeof element.id === 'string' ? element.id : null;
}

/**
 * Converts targets of jumps and fallbacks: a question in one view, its block in the other. Ids of endings stay the
 * same.
 */
function retargeted(
  fields: Readonly<Record<string, unknown>>,
  from: string,
  to: string,
  targets: ReadonlyMap<string, string>,
): Record<string, unknown> {
  const move = (target: unknown): unknown =>
    typeof target === 'string' ? (targets.get(target) ?? target) : target;
  const moveAction = (action: unknown): unknown =>
    isRecord(action) && action.objective === from
      ? { ...action, objective: to, target: move(action.target) }
      : action;
  const moveRule = (rule: unknown): unknown =>
    isRecord(rule) && Array.isArray(rule.actions) ? { ...rule, actions: rule.actions.map(moveAction) } : rule;
  const { logic, logicFallback } = fields;
  return {
    ...fields,
    ...(Array.isArray(logic) ? { logic: logic.map(moveRule) } : {}),
    ...(logicFallback === undefined ? {} : { logicFallback: move(logicFallback) }),
  };
}
