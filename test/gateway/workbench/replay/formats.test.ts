/** Reads a real sample of each format line by line, and detects the format by its content. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { detectReader, type HeaderFields } from '#gateway/workbench/replay/formats/formats.ts';
import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';

const NO_FIELDS: HeaderFields = new Map();

function linesOf(name: string): string[] {
  const file = new URL(`../../../fixtures/logs/${name}`, import.meta.url);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** Returns the results of the detected reader. */
function read(
  name: string,
  headers = NO_FIELDS,
): { format: string | undefined; requests: (LoggedRequest | null)[] } {
  const lines = linesOf(name);
  const reader = detectReader(lines, headers);
  const requests = lines.map((line) => reader?.read(line) ?? null);
  return { format: reader?.format, requests };
}

const at = (text: string): number => Date.parse(text);

t.test('reads our own log: digests, and whether a key was proven', async (t) => {
  const { format, requests } = read('floodgate.log');
  t.equal(format, 'floodgate');
  t.match(requests, [
    {
      at: at('2026-11-22T08:23:01.123Z'),
      method: 'GET',
      target: '/items/1',
      status: 200,
      sender: null,
      digests: {
        decision: 'allow',
        identities: new Map([['api-key', 'Saxd4hntrmL5_e6g_D869A']]),
        address: 'BIBL6vGlykAjmy6Ss8nJow',
        unproven: ['api-key'],
        proves: true,
        policies: ['items'],
      },
    },
    { method: 'POST', status: 401, digests: { unproven: [], proves: false } },
    { status: 429, digests: { decision: 'deny' } },
    { target: '/a"b', status: 0, digests: { decision: 'uncovered', identities: new Map() } },
    { method: null, digests: { decision: 'malformed', address: null } },
  ]);
});

t.test('reads NGINX: combined, common, and with X-Forwarded-For', async (t) => {
  for (const name of ['nginx-combined.log', 'nginx-common.log', 'nginx-main.log']) {
    const { format, requests } = read(name);
    t.equal(format, 'nginx', name);
    const sender = { peer: '127.0.0.1', client: '127.0.0.1' };
    t.match(requests, [
      {
        at: at('2026-11-22T08:23:01Z'),
        method: 'POST',
        target: '/login',
        status: 401,
        sender,
        digests: null,
      },
      { method: 'POST' },
      { method: 'POST' },
      {
        target: '/items/1?q=1',
        status: 200,
        sender: { forwardedFor: name === 'nginx-main.log' ? '198.51.100.7, 10.0.0.2' : '' },
      },
      { method: 'HEAD', target: '/items/2' },
      { method: 'GET', target: '/caf\xc3\xa9"x', status: 404 },
      { method: null, status: 400 },
    ]);
    t.notOk(requests[0]?.sender?.holds('x-api-key'));
  }
});

t.test('reads times with a zone and Apache quotes, and refuses malformed lines', async (t) => {
  const line = '2001:db8::7 - - [22/Nov/2026:09:23:01 +0100] "GET /a\\"b HTTP/1.1" 200 - "-" "a \\"b\\" c"';
  const reader = detectReader([line], NO_FIELDS);
  t.match(reader?.read(line), {
    at: at('2026-11-22T08:23:01Z'),
    target: '/a"b',
    sender: { peer: '2001:db8::7', forwardedFor: '' },
  });
  for (const bad of [
    '',
    'nonsense',
    '192.0.2.1 - - [22/Nov/2026:09:23:01 +0100]',
    '192.0.2.1 - - [22/Nov/2026:09:23:01 +0100] "GET /a',
    '192.0.2.1 - - [22/Foo/2026:09:23:01 +0100] "GET / HTTP/1.1" 200 1',
    '192.0.2.1 - - [22/Nov/2026:09:23:01 +0100] "GET / HTTP/1.1" no 1',
  ]) {
    t.equal(reader?.read(bad), null, bad);
  }
  t.equal(detectReader(['nonsense', '{"a":1}', '[]', '{'], NO_FIELDS), null);
});

t.test('reads Traefik: header fields where it logs them', async (t) => {
  const { format, requests } = read('traefik.json.log');
  t.equal(format, 'traefik');
  t.match(requests, [
    {
      at: at('2026-11-22T08:23:01.123Z'),
      method: 'GET',
      target: '/items/1?q=1',
      status: 200,
      sender: {
        peer: '198.51.100.7:51234',
        client: '198.51.100.7',
        forwardedFor: '',
      },
    },
    { method: 'POST', status: 401, sender: { client: '198.51.100.8' } },
    { sender: { peer: '10.0.0.2:40113', client: '203.0.113.9', forwardedFor: '203.0.113.9' } },
  ]);
  t.ok(requests[0]?.sender?.headers.join().includes('x-api-key,key-1'));
  t.ok(requests[0]?.sender?.holds('x-api-key'));
  t.notOk(requests[0]?.sender?.holds('cookie'));
  t.notOk(requests[0]?.sender?.holds('authorization'), 'its value is redacted');
});

t.test('reads Caddy: all header fields, times of arrival', async (t) => {
  const { format, requests } = read('caddy.json.log');
  t.equal(format, 'caddy');
  t.match(requests, [
    {
      at: Math.round(1_795_422_181_524.1 - 400.93),
      method: 'GET',
      target: '/items/1?q=1',
      status: 200,
      sender: { peer: '198.51.100.7', client: '198.51.100.7' },
    },
    { method: 'POST', target: '/login', status: 401 },
    {
      target: '/caf\xc3\xa9',
      sender: {
        peer: '10.0.0.2',
        client: '203.0.113.9',
        forwardedFor: '203.0.113.9',
      },
    },
  ]);
  t.ok(requests[0]?.sender?.headers.join().includes('X-Api-Key,key-1'));
  t.ok(requests[0]?.sender?.holds('anything'));
  t.notOk(requests[2]?.sender?.holds('authorization'), 'its value is redacted');
});

t.test('reads Envoy: the field names of Envoy Gateway and Istio', async (t) => {
  const { format, requests } = read('envoy.json.log', new Map([['x-api-key', 'api_key']]));
  t.equal(format, 'envoy');
  t.match(requests, [
    {
      at: at('2026-11-22T08:23:01.123Z'),
      method: 'GET',
      target: '/items/1?q=1',
      status: 200,
      sender: { client: '198.51.100.7:51234', headers: ['x-api-key', 'key-1'], forwardedFor: '198.51.100.7' },
    },
    { method: 'POST', target: '/login', sender: { headers: [], client: '[2001:db8::7]:51235' } },
    { target: '/items/2', status: 200, sender: { forwardedFor: '203.0.113.9,10.0.0.2' } },
  ]);
  t.ok(requests[0]?.sender?.holds('x-api-key'));
  t.notOk(read('envoy.json.log').requests[0]?.sender?.holds('x-api-key'));
});

t.test('skips text that a collector puts before a document', async (t) => {
  const [line = ''] = linesOf('floodgate.log');
  const prefixed = `gateway-1  | ${line}`;
  const reader = detectReader([prefixed], NO_FIELDS);
  t.equal(reader?.format, 'floodgate');
  t.match(reader?.read(prefixed), { method: 'GET', status: 200 });
});
