/** Asks a name server on loopback that knows one name. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import t from 'tap';
import { createResolve } from '#api/events/targets.ts';

const A = 1;
const AAAA = 28;
const addresses: Readonly<Record<number, Buffer>> = {
  [A]: Buffer.from([93, 184, 215, 14]),
  [AAAA]: Buffer.from('2606280000000000000000000000000e', 'hex'),
};

/** Answers by RFC 1035 §4.1: one question, and one answer that points at its name. */
function answerTo(query: Buffer, isKnown: (name: string) => boolean): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('ascii', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const type = query.readUInt16BE(at + 1);
  const data = isKnown(labels.join('.')) ? addresses[type] : undefined;
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(data === undefined ? 0x8183 : 0x8180, 2);
  header.writeUInt16BE(data === undefined ? 0 : 1, 6);
  header.fill(0, 8);
  if (data === undefined) return Buffer.concat([header, question]);
  const answer = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
  return Buffer.concat([header, question, answer, data]);
}

t.test('host names of customers are resolved by DNS, with all addresses of both families', async (t) => {
  const server = createSocket('udp4');
  server.on('message', (query, { port, address }) =>
    server.send(
      answerTo(query, (name) => name === 'hooks.example.com'),
      port,
      address,
    ),
  );
  server.bind(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await once(server, 'listening');
  const resolve = createResolve([`127.0.0.1:${server.address().port}`]);
  t.same(await resolve('hooks.example.com', false), ['93.184.215.14', '2606:2800::e']);
  t.same(await resolve('nowhere.example.com', false), []);
});

t.test('host names of the operator are resolved as the operating system does', async (t) => {
  const found = await createResolve()('localhost', true);
  t.ok(found.includes('127.0.0.1') || found.includes('::1'), found.join());
});
