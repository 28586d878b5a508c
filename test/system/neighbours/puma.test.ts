/** A Rack application on Puma: paths as they were sent, streams. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
writeFileSync(
  join(folder, 'config.ru'),
  `require 'json'
require 'digest'

run(lambda do |env|
  request = Rack::Request.new(env)
  case env['PATH_INFO']
  when '/items' then [301, { 'location' => request.url + '/' }, []]
  when '/stream' then [200, { 'content-type' => 'text/plain' }, Enumerator.new { |out| 100.times { |i| out << "line #{i}\\n" } }]
  when '/upload'
    file = request.params['f']
    [200, {}, [Digest::SHA256.hexdigest(file[:tempfile].read), ' ', file[:filename]]]
  else
    seen = { path: env['PATH_INFO'], sent: env['REQUEST_PATH'], query: request.params, address: request.url, scheme: request.scheme }
    [200, { 'content-type' => 'application/json', 'set-cookie' => "a=1\\nb=2" }, [seen.to_json]]
  end
end)
`,
);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['puma', '-e', 'production', '-t', '1:4', '-b', `tcp://127.0.0.1:${port}`, 'config.ru'],
});

t.test('an address without its slash', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/items'));
  t.match(replies, [{ status: 301 }, { status: 200, body: '"path":"/items/"' }]);
});

t.test('paths arrive as they were sent', async (t) => {
  for (const path of [
    '/a/b/',
    '/api/queues/%2F/q',
    '/projects/group%2Fname',
    '/50%25de',
    '/a//b',
    '/a%7Eb',
    '/a;v=1/b',
  ])
    t.match(await neighbour.same(t, path, (way) => ask(way, path)), {
      status: 200,
      body: `"sent":"${path}"`,
    });
  await neighbour.same(t, 'a query', (way) => ask(way, '/q?a[]=1&a[]=2&b[c]=%2F&d=x+y'));
});

t.test('an upload, and a stream without a length', async (t) => {
  const headers = { 'content-type': 'multipart/form-data; boundary=x' };
  const body = Buffer.concat([
    Buffer.from('--x\r\nContent-Disposition: form-data; name="f"; filename="a b.png"\r\n\r\n'),
    Buffer.alloc(300_000, 'bytes of a picture '),
    Buffer.from('\r\n--x--\r\n'),
  ]);
  for (const pieces of [undefined, 50_000]) {
    const sent = { method: 'POST', headers, body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/upload', sent));
    t.match(reply, { status: 200, body: /^[0-9a-f]{64} a b\.png$/ });
  }
  t.match(await neighbour.same(t, 'the stream', (way) => ask(way, '/stream')), { body: /line 99\n$/ });
});
