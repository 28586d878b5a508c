/** Organizations, workspaces and webhooks get places in turn. */
import t from 'tap';
import type { Head } from '#api/events/lease.ts';
import { createTurns } from '#api/events/turns.ts';

/** @param name such as `A1x`: webhook x of workspace 1 of organization A */
const head = (name: string): Head => ({
  organizationId: name.slice(0, 1),
  workspaceId: name.slice(0, 2),
  webhookId: name,
  url: 'https://example.com',
});
const order = (turns: ReturnType<typeof createTurns>, names: string): string =>
  turns
    .order(names.split(' ').map(head))
    .map(({ webhookId }) => webhookId)
    .join(' ');
const serve = (turns: ReturnType<typeof createTurns>, names: string): void => {
  for (const name of names.split(' ')) turns.serve(head(name));
};

t.test('organizations alternate, then workspaces, then webhooks', (t) => {
  const turns = createTurns();
  t.equal(order(turns, 'A1a A1b A1c A2a B1a'), 'A1a B1a A2a A1b A1c');
  t.equal(order(turns, 'A1a'), 'A1a');
  t.same(turns.order([]), []);
  t.end();
});

t.test('who was served longest ago comes first, on each level', (t) => {
  const turns = createTurns();
  serve(turns, 'B1a A1a');
  t.equal(order(turns, 'A1a A1b A2a B1a C1a'), 'C1a B1a A2a A1b A1a');
  serve(turns, 'C1a B1a A2a');
  t.equal(order(turns, 'A1a A1b A2a B1a C1a'), 'C1a B1a A1b A2a A1a');
  t.end();
});

t.test('remembers a bounded number of them', (t) => {
  const turns = createTurns(4);
  serve(turns, 'A1a B1a');
  t.equal(order(turns, 'A1a B1a'), 'A1a B1a');
  t.equal(order(turns, 'A1b A1a'), 'A1b A1a', 'it is known that A1a was served');
  serve(turns, 'C1a');
  t.equal(order(turns, 'C1a A1a'), 'A1a C1a');
  t.equal(order(turns, 'A1b A1a'), 'A1b A1a', 'A1a is forgotten, so the order is that of the list');
  t.equal(order(turns, 'A1a A1b'), 'A1a A1b');
  t.end();
});
