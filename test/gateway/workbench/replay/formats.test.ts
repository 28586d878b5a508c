/** Reads the samples of formats.md line by line, and detects their formats by the content. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { detectReader, type HeaderFields } from '#gateway/workbench/replay/formats/formats.ts';
import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import { difference, opened, parsePattern } from '#test/conversations/document.ts';
import { projectRoot } from '#test/support/process.ts';

const NO_FIELDS: HeaderFields = new Map();
const FIELDS = ['x-api-key', 'cookie', 'authorization', 'anything'];

function linesOf(name: string): string[] {
  const text = readFileSync(join(projectRoot, 'test/fixtures/logs', name), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

/** As the page writes it. */
function shown(request: LoggedRequest | null): object | null {
  if (request === null) return null;
  const { at, digests, sender } = request;
  return {
    ...request,
    at: new Date(at).toISOString(),
    digests: digests && { ...digests, identities: Object.fromEntries(digests.identities) },
    sender: sender && { ...sender, headers: sender.headers.join(), holds: FIELDS.filter(sender.holds) },
  };
}

const PAGE = readFileSync(join(import.meta.dirname, 'formats.md'), 'utf8');
for (const [, title = '', pattern = ''] of PAGE.matchAll(/^## (.+)$[\s\S]*?^```json\n([\s\S]*?)^```$/gm))
  t.test(title, async (t) => {
    const [names = '', field] = title.split(' with ');
    const fields: HeaderFields = new Map(
      field === undefined ? [] : [field.split(' as ') as [string, string]],
    );
    for (const name of names.split(', ')) {
      const lines = linesOf(name);
      const reader = detectReader(lines, fields);
      const requests = lines.map((line) => shown(reader?.read(line) ?? null));
      const got = { format: reader?.format, requests };
      t.equal(difference(opened(parsePattern(pattern)), got, new Map(), name), null);
    }
  });

t.test('reads times with a zone and Apache quotes, and refuses malformed lines', async (t) => {
  const line = '2001:db8::7 - - [22/Nov/2026:09:23:01 +0100] "GET /a\\"b HTTP/1.1" 200 - "-" "a \\"b\\" c"';
  const reader = detectReader([line], NO_FIELDS);
  t.match(reader?.read(line), {
    at: Date.parse('2026-11-22T08:23:01Z'),
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
  ])
    t.equal(reader?.read(bad), null, bad);
  t.equal(detectReader(['nonsense', '{"a":1}', '[]', '{'], NO_FIELDS), null);
});

t.test('skips text that a collector puts before a document', async (t) => {
  const [line = ''] = linesOf('floodgate.log');
  const prefixed = `gateway-1  | ${line}`;
  const reader = detectReader([prefixed], NO_FIELDS);
  t.equal(reader?.format, 'floodgate');
  t.match(reader?.read(prefixed), { method: 'GET', status: 200 });
});
