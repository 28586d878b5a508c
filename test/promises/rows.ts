/** The promises of this project, each with the test that holds it. docs/promises.md has the same table. */

export interface Promised {
  /** One sentence that can be false. */
  readonly promise: string;
  /** Test files of the short form, which `npm run audit` runs. */
  readonly tests: readonly string[];
  /** The part of the sentence that these tests do not try. */
  readonly notCovered: string;
}

const row = (promise: string, tests: readonly string[], notCovered: string): Promised => ({
  promise,
  tests: tests.map((file) => `test/${file}.test.ts`),
  notCovered,
});

export const PROMISES: readonly Promised[] = [
  row(
    'In no order of requests, replies, lost replies, errors, stalls, killed gateways and lost stores does a window admit more than the documented formula, and only what was in flight when a store went away is charged twice.',
    ['gateway/limiter/every-order'],
    'the search ends at 3 gateways, a limit of 3, 5 requests and two faults at once; its store is a model of Redis',
  ),
  row(
    'Three gateway processes keep every limit, also while Redis is killed and comes back empty, and refuse nobody early while it is there.',
    ['system/exactness/history'],
    'networks between machines; the judge of the history allows early refusals while the store is away',
  ),
  row(
    'The store in memory and the script in Redis decide the same for the same requests.',
    ['gateway/algorithms/at-random', 'gateway/limiter/conformance'],
    'the random part stops at 300 histories; test:all takes another seed',
  ),
  row(
    'Four gateways with one Redis admit exactly the limit of each row of the shipped policies.',
    ['gateway/request/limits'],
    'all requests of a test come from one machine',
  ),
  row(
    'A slow store makes replies slow, and no limit wrong.',
    ['gateway/limiter/slow-store'],
    'stores that take longer than ten times `timeout_ms`; for them the first row holds',
  ),
  row(
    'With count: failure, count: success and reported costs, each reply changes the counter exactly once.',
    ['gateway/limiter/outcome', 'gateway/policy/served/reply-cost'],
    'replies that never come are settled when the gateway gives up; a gateway that is killed settles nothing',
  ),
  row(
    'However a request ends, its place of concurrency is given back exactly once.',
    ['gateway/policy/served/concurrency', 'gateway/limiter/concurrency'],
    'places of a killed gateway come back when their lease ends, after up to 30 seconds',
  ),
  row(
    "The gateway's own parser accepts nothing that node:http rejects, and reads the same from it.",
    ['gateway/listen/plain/differential', 'gateway/listen/plain/documents'],
    'mistakes that both parsers share',
  ),
  row(
    'The gateway meets each MUST of the 215 cases of a public table of HTTP/1.1, on both ways in.',
    ['gateway/listen/conformance/http-conformance'],
    'rules of RFC 9110 and 9112 that the table has no case for',
  ),
  row(
    'All spellings of a path meet the same policies, also where servers read it differently, and the application gets the path as sent, without dot segments.',
    [
      'gateway/policy/target',
      'policies/policies',
      'gateway/exchanges/exchanges',
      'system/parsers/path-readings',
    ],
    'applications that decode a path three times or rewrite it themselves',
  ),
  row(
    'Each client gets the whole reply to its own request, and no field can become another field or request.',
    ['gateway/proxy/own-replies', 'gateway/proxy/late-bytes', 'gateway/proxy/request-text'],
    'an application that sends bytes behind a reply that announced its length, after the next request was sent',
  ),
  row(
    'A replay of the log decides as the gateway did, and counts as a plain model of fixed windows does.',
    ['gateway/workbench/replay/equality', 'system/exactness/million-lines'],
    'logs of other programs, which have neither keys nor bodies; the model knows fixed windows only',
  ),
  row(
    'No address and no credential of a client is in Redis, the logs, the metrics or the admin API.',
    ['gateway/observe/nothing-personal', 'gateway/addresses/addresses'],
    'GATEWAY_SHOW_ADDRESSES, which shows operators the addresses of refused clients; paths that contain personal data are logged',
  ),
  row(
    'Without a trusted proxy, a client cannot choose the address by which it is counted.',
    ['shared/client-address', 'shared/trusted-proxies', 'gateway/listen/proxy-protocol/proxy-protocol'],
    'proxies that are trusted and pass on what a client claims',
  ),
  row(
    'Fields that applications trust reach them only from the gateway or from a trusted proxy.',
    ['gateway/exchanges/exchanges', 'gateway/http/header-filter'],
    'names that are not on the list; GATEWAY_PASS_HEADERS lets names through',
  ),
  row(
    'Invented keys, sessions and tokens give a client no budget beyond that of its address.',
    ['policies/policies', 'gateway/identity/verified-tokens', 'gateway/identity/json-web-token'],
    'an application that answers 2xx to invented keys',
  ),
  row(
    'One client, and one IPv6 network, cannot hold more than its share of any bound.',
    ['gateway/bounds/shares', 'gateway/bounds/networks', 'gateway/bounds/waiting-uploads'],
    'attackers with many addresses in many networks',
  ),
  row(
    'A flood of invented keys costs neither the process nor Redis more memory than its bound.',
    ['system/exactness/key-flood', 'gateway/limiter/digest-table'],
    'the flood of the test has 4,000 keys of 15 KB; the tables are compared with plain maps',
  ),
  row(
    'A policy file with a mistake, or whose tests fail, never replaces the one in use.',
    ['gateway/policy/served/reload', 'gateway/policy/file/load'],
    'a file that is valid, and means something else than its author thinks',
  ),
  row(
    'A gateway that is told to stop answers the requests that it has, and loses none.',
    ['gateway/process/stop', 'system/crashes/gateway-stop'],
    'requests that take longer than GATEWAY_DRAIN_TIMEOUT_MS; SIGKILL',
  ),
  row(
    'The admin API obeys only holders of the token, or this machine if there is none, and no web page of another origin.',
    ['gateway/operate/admin/guard'],
    'other users of the machine, if there is no token',
  ),
  row(
    'All newcomers together get exactly their limit over all gateways, clients who were here on enough days are never charged to it, also after Redis has lost its data, and Redis remembers only so many new clients a day, however large a swarm is.',
    [
      'gateway/policy/served/newcomers',
      'gateway/limiter/history',
      'gateway/limiter/lost-histories',
      'gateway/limiter/new-clients',
    ],
    'people with a new address are newcomers, and so are regulars that no running gateway knows when Redis loses its data; a swarm that comes back on enough days is a regular',
  ),
  row(
    'The decision listener decides as the gateway does.',
    ['policies/policies', 'gateway/decision-listener/checked-request'],
    'what the other proxy tells the decision listener is believed',
  ),
  row(
    'Webhooks of the survey API reach no address in a private network unless the operator lists it.',
    ['api/events/targets'],
    'DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS=1',
  ),
  row(
    'From the moment that an organization is deleted with its only owner, no route of the survey API knows its workspaces or what was in them, and their rows and files follow.',
    ['api/resources/organizations/gone', 'api/resources/organizations/deletion'],
    'requests that began before; states that a process remembers, for up to a minute; entries of the audit log, backups, and older versions of the objects in a bucket that keeps them',
  ),
];
