/** Counts the requests of each client exactly. */
import t from 'tap';
import { ClientCounts, Clients } from '#gateway/workbench/replay/clients.ts';

t.test('clients: counts any number exactly', async (t) => {
  const clients = new Clients();
  const counts = new ClientCounts(clients);
  for (let i = 0; i < 60_000; i++) counts.add(`client ${i}`);
  for (let i = 0; i < 9; i++) counts.add('client 30000');
  for (const name of ['client 8', 'client 7', 'client 8']) counts.add(name);
  t.equal(counts.size, 60_000);
  t.notOk(clients.isFull);
  t.strictSame(counts.most(3), [
    { identity: 'client 30000', count: 10 },
    { identity: 'client 8', count: 3 },
    { identity: 'client 7', count: 2 },
  ]);
});

t.test('clients: too many are not counted, which is reported', async (t) => {
  const clients = new Clients(2);
  const [some, others] = [new ClientCounts(clients), new ClientCounts(clients)];
  for (const name of ['a', 'b', 'a']) some.add(name);
  t.notOk(clients.isFull);
  for (const name of ['b', 'c', 'b']) others.add(name);
  t.ok(clients.isFull);
  t.strictSame(some.most(5), [
    { identity: 'a', count: 2 },
    { identity: 'b', count: 1 },
  ]);
  t.strictSame([others.size, others.most(5)], [1, [{ identity: 'b', count: 2 }]]);
});
