/** The cases of host.md. */
import { join } from 'node:path';
import t from 'tap';
import { canonicalHost, localAuthority, requestHost } from '#gateway/http/host.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

const FILE = join(import.meta.dirname, 'host.md');
const given = (text = ''): string | undefined => (text === '(none)' ? undefined : text);

t.test('a host in canonical form', async (t) => {
  for (const [text = '', expected] of casesUnder(FILE, 'Canonical forms'))
    t.equal(canonicalHost(text), given(expected) ?? null, text);
});

t.test('the host of a request', async (t) => {
  for (const [host, target, forwardedHost, who, expected] of casesUnder(FILE, 'The host of a request')) {
    const presented = { host: given(host), forwardedHost: given(forwardedHost) };
    const read = requestHost(presented, given(target) ?? null, who === 'trusted');
    t.match(read.ok ? read.host : read.reason, expected, `${host} ${target} ${forwardedHost}`);
    t.equal(read.ok, !expected?.includes(' '));
  }
});

t.test('the authority of the address that a client has connected to', async (t) => {
  for (const [localAddress = '', localPort, scheme, authority] of casesUnder(
    FILE,
    'The address that a client has connected to',
  ))
    t.equal(localAuthority({ localAddress, localPort: Number(localPort) }, scheme as 'http'), authority);
  t.equal(localAuthority({}, 'http'), 'localhost');
});
