/** Tests how hosts are named in the policy file, and which hosts a name matches. */
import t from 'tap';
import { HostNames } from '#gateway/policy/host-names.ts';

function names(...texts: readonly string[]): HostNames {
  const all = new HostNames();
  for (const text of texts) all.add(text);
  return all;
}

t.test('a name matches one host, a wildcard all hosts below', async (t) => {
  const some = names(
    'Shop.Example.org.',
    '*.Example.com',
    'bücher.example',
    '*.straße.de',
    '[0::1]',
    '192.0.2.1',
  );
  const named =
    'shop.example.org a.example.com a.b.c.example.com xn--bcher-kva.example a.xn--strae-oqa.de [::1] 192.0.2.1';
  for (const host of named.split(' ')) t.ok(some.has(host), host);
  const others =
    'example.org a.shop.example.org example.com badexample.com example.com.evil.test xn--strae-oqa.de strasse.de [::2] 192.0.2.2';
  for (const host of ['', ...others.split(' ')]) t.notOk(some.has(host), host);
  t.notOk(names('a.test').has('b.a.test'));
});

t.test('what is no host', async (t) => {
  const texts =
    '* *. *.*.example.org shop.* https://shop.example.org shop.example.org/path shop.example.org:443 bücher.example:443 bücher.example/x b%C3%BCcher.example bü%41.example ::1 *.[::1] *.192.0.2.1 127.1 xn--shop-.example';
  for (const text of ['', 'two words.example', ...texts.split(' ')])
    t.throws(() => names(text), { message: /is not a host/ }, text);
});
