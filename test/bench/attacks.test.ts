import t from 'tap';
import { ATTACKS, readAttacks } from '#bench/abuse/attacks.ts';
import { inTurn, requestText } from '#bench/abuse/template.ts';

t.test('every entry of an attack says how it uses connections, and what it sends', async (t) => {
  t.ok(ATTACKS.size > 50);
  for (const [name, { attack }] of ATTACKS)
    for (const { hold, open, flood, send, raw } of attack) {
      t.equal([hold, open, flood].filter((one) => one !== undefined).length, 1, name);
      t.notOk(send !== undefined && raw !== undefined, name);
    }
});

t.test('wrong keys of attacks are named', async (t) => {
  const wrong = 'a: { title: t, limitz: shipped, attack: [{ hold: 1, sned: x }], goals: { admited: 1 } }';
  for (const key of ['/a/limitz', '/a/attack/0/sned', '/a/goals/admited'])
    t.throws(() => readAttacks(wrong), new RegExp(key));
  t.throws(() => readAttacks('a: { attack: [] }'), /title/);
});

t.test('texts repeat parts, and change with each request', async (t) => {
  const next = inTurn(['<2 * a#<3 * b>,>', '<turn 2>', '<new 2>|<address>']);
  const texts = Array.from({ length: 12 }, () => String(next()));
  t.equal(texts[0], 'a0bbb,a1bbb,');
  t.same([texts[1], texts[4], texts[7]], ['0', '1', '0']);
  const [first, second, third, fourth] = [2, 5, 8, 11].map((i) => texts[i]?.split('|') ?? []);
  t.equal(first?.[0], second?.[0], 'new after two requests');
  t.not(second?.[0], third?.[0]);
  t.equal(first?.[0]?.length, 16);
  t.same(
    [first, second, third, fourth].map((one) => one?.[1]).join(' '),
    '10.0.0.0 10.0.0.1 10.0.0.1 10.0.0.2',
  );
});

t.test('a request in the short form becomes HTTP', async (t) => {
  t.equal(requestText('GET /'), 'GET / HTTP/1.1\r\nHost: bench.example\r\n\r\n');
  t.equal(
    requestText('POST /a\nContent-Length: 3\n\nx\n\ny\n'),
    'POST /a HTTP/1.1\r\nHost: bench.example\r\nContent-Length: 3\r\n\r\nx\n\ny',
  );
  t.match(requestText('GET /\n<2 * A-#: b\n>'), /example\r\nA-0: b\r\nA-1: b\r\n\r\n$/);
});
