/** Which headers an operator may let pass. What is removed stands in test/gateway/exchanges/headers.md. */
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';

const PRIVATE_NAMES = [
  'X-Formbricks-Client-IP',
  'x_formbricks_client_ip',
  'X-Middleware-Subrequest',
  'X_Gateway_Over',
];

t.test('a header that can never pass is refused at start', async (t) => {
  for (const value of [
    'Transfer-Encoding',
    'x-gateway-ratelimited',
    'X-Forwarded-For',
    'Host',
    'a b',
    'ä',
    ...PRIVATE_NAMES,
  ]) {
    t.throws(
      () => readConfig({ GATEWAY_PASS_HEADERS: `x-ok, ${value}` }),
      { message: new RegExp(`^GATEWAY_PASS_HEADERS: "${value}"`) },
      value,
    );
  }
});

t.test('a name with the same length and first letter is not mistaken for another', async (t) => {
  const filter = new HeaderFilter();
  for (const name of ['x-real-ap', 'x-real-ips', 'Pr0xy', 'PROXI', 'hosu', ''])
    t.notOk(filter.stops(name, false), name);
});
