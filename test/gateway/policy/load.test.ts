/** Loads the files of `test/fixtures/policies/`. Each has one kind of mistake. */
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t, { type Test } from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { PolicyFileError, type Problem } from '#gateway/policy/problems.ts';

const FIXTURES = resolve(import.meta.dirname, '../../fixtures/policies');
/** Files that no YAML tool can read, our linter included, end in .yaml.txt. */
const files = new Map(readdirSync(FIXTURES).map((file) => [file.replace(/\.yaml(?:\.txt)?$/, ''), file]));

function fixture(name: string): string {
  return readFileSync(resolve(FIXTURES, files.get(name) ?? name), 'utf8');
}

/** The position as `line:column`, and words of the message: the mistake and its fix. */
type Mistake = readonly [at: string, mention: string];

const LIMIT = 'requests per window, a whole number from 1 to 1000000000';
const DURATION = 'a length of time such as 30s, 1m, 1h or 1d';
const WINDOW = `${DURATION}, or day, week or month for calendar windows`;
const ROUTE = 'METHODS PATH, such as POST /api/items or GET,PUT /api/items/*';
const SOURCE = 'write client-address, or a list such as [ { header: x-api-key }, { bearer: fbk_ } ]';
const FILE = 'a policy file has version, identifiers and policies';
const IDENTIFIERS = 'names of lower-case letters, digits and dashes, each with a source';
const LITERAL =
  'is neither a literal nor a wildcard; write a literal (other characters percent-encoded), {param} for one segment, or * at the end';
const POLICY_KEYS =
  'allowed here: name, route, identifier, limit, overrides, overridesFile, window, algorithm, burst, concurrency, limits, cost, count, bucket, rollout, mode, onStoreFailure, ban, priority, headers';
const FILE_KEYS =
  'allowed here: version, identifiers, exclude, ignoreCase, timezone, protect, allow, deny, plan, plans, replies, policies, tests';
const METHODS = 'write upper-case methods such as GET, several joined by commas without spaces, or *';
const UNEQUAL = 'make them equal or use another bucket';

const MISTAKES: Readonly<Record<string, readonly Mistake[]>> = {
  'algorithm-unknown': [
    [
      '11:16',
      'algorithm is "leaky"; expected: fixed-window (the default), sliding-window to avoid a double limit at the edge of a window, or token-bucket to refill steadily',
    ],
  ],
  'alias-before-anchor': [['9:12', '*w has no anchor &w above it; write the value out']],
  'alias-bomb': [['2:8', 'the aliases of this file expand to too many values; write the values out']],
  'alias-of-itself': [['5:17', '*loop is inside its own anchor; write the value out']],
  'alias-without-anchor': [['9:12', '*five has no anchor &five above it; write the value out']],
  'ban-by-body': [
    ['15:5', 'body.email names no single client; ban in a policy by address, with ipv6Prefix 64, or by key'],
  ],
  'ban-of-nobody': [
    ['12:5', 'everyone names no single client; ban in a policy by address, with ipv6Prefix 64, or by key'],
    ['18:5', 'a ban is by /64, and host counts by /128'],
    ['24:5', 'ip+path.id names no single client'],
    ['30:5', 'a ban is by /64, and site counts by /48'],
  ],
  'ban-too-long': [
    ['10:19', 'after is 0; expected: after how many denials, a whole number from 1 to 1000000'],
    ['16:30', 'within 2d is too long; write at most 1d'],
    ['16:39', 'a ban of 30d is too long; write at most 7d'],
    ['22:13', `bucket other is shared with other in line 11, which has a different ban; ${UNEQUAL}`],
  ],
  'body-beside-a-header': [
    [
      '4:22',
      'a field of the body must be the only source; give the other sources an identifier of their own, and write a list of both in the policy',
    ],
    ['5:21', `source is [{"body":"user.email"}]; expected: ${SOURCE}`],
    [
      '19:17',
      'identifier is {"body":"user.email"}; expected: the name of an entry under identifiers, path.NAME for a parameter of the route, { body: FIELD }, everyone, or a list of 2 to 4 names',
    ],
  ],
  'bucket-name': [
    ['11:13', 'bucket is "My bucket"; expected: the name of a counter that several policies share'],
  ],
  'bucket-with-other-algorithm': [
    ['17:13', `bucket items is shared with items in line 6, which has a different algorithm; ${UNEQUAL}`],
  ],
  'bucket-with-other-burst': [
    ['19:13', `bucket items is shared with items in line 6, which has a different burst; ${UNEQUAL}`],
  ],
  'bucket-with-other-count': [
    ['17:13', `bucket items is shared with items in line 6, which has a different count; ${UNEQUAL}`],
  ],
  'bucket-with-other-headers': [
    [
      '17:13',
      `bucket items is shared with items in line 6, which has a different limit and headers; ${UNEQUAL}`,
    ],
  ],
  'bucket-with-other-identifier': [
    ['16:13', `bucket items is shared with items in line 6, which has a different identifier; ${UNEQUAL}`],
  ],
  'bucket-with-other-limit-and-burst': [
    ['18:13', `bucket items is shared with items in line 6, which has a different limit; ${UNEQUAL}`],
  ],
  'bucket-with-other-limit': [
    ['16:13', `bucket items is shared with items in line 6, which has a different limit; ${UNEQUAL}`],
  ],
  'bucket-with-other-mode': [
    ['17:13', `bucket items is shared with items in line 6, which has a different mode; ${UNEQUAL}`],
  ],
  'bucket-with-other-outage-rule': [
    [
      '17:13',
      `bucket items is shared with items in line 6, which has a different onStoreFailure; ${UNEQUAL}`,
    ],
  ],
  'bucket-with-other-reply-header': [
    [
      '24:13',
      `bucket chat is shared with chat in line 6, which has a different cost.replyHeader; ${UNEQUAL}`,
    ],
    [
      '31:13',
      `bucket chat is shared with chat in line 6, which has a different cost.replyHeader; ${UNEQUAL}`,
    ],
  ],
  'bucket-with-other-window': [
    ['16:13', `bucket items is shared with items in line 6, which has a different window; ${UNEQUAL}`],
  ],
  'bucket-with-other-overrides': [
    ['17:13', `bucket b is shared with items in line 5, which has a different overrides; ${UNEQUAL}`],
  ],
  'cost-above-the-burst': [
    [
      '13:11',
      'a request costs 3 and at most 2 may be used at once, so none could ever pass; write at most 2',
    ],
  ],
  'cost-above-the-limit': [
    [
      '11:11',
      'a request costs 6 and at most 5 may be used at once, so none could ever pass; write at most 5',
    ],
  ],
  'cost-of-unknown-bodies': [
    [
      '11:11',
      'a body of unknown length costs 6 and at most 5 may be used at once, so none could ever pass; write at most 5',
    ],
  ],
  'cost-unknown': [
    [
      '11:11',
      'cost is "response-bytes"; expected: how much of the limit a request uses: a number (1 unless given), { header: NAME }, { replyHeader: NAME, reserve: N } if a header of the reply reports it, body-bytes, or { body-bytes: N } with the cost of a body of unknown length',
    ],
  ],
  'cost-zero': [
    [
      '11:11',
      'cost is 0; expected: how much of the limit a request uses: a number (1 unless given), { header: NAME }, { replyHeader: NAME, reserve: N } if a header of the reply reports it, body-bytes, or { body-bytes: N } with the cost of a body of unknown length',
    ],
  ],
  'reserve-above-the-limit': [
    [
      '11:11',
      'a request reserves 6 and at most 5 may be used at once, so none could ever pass; write at most 5',
    ],
  ],
  'reserve-missing': [
    [
      '11:11',
      'cost is {"replyHeader":"x-tokens"}; expected: how much of the limit a request uses: a number (1 unless given), { header: NAME }, { replyHeader: NAME, reserve: N } if a header of the reply reports it, body-bytes, or { body-bytes: N } with the cost of a body of unknown length',
    ],
  ],
  'count-unknown': [
    [
      '11:12',
      'count is "errors"; expected: request (the default), or failure or success to count only requests that the application answers with 4xx or 5xx, or with less',
    ],
  ],
  'concurrency-beside-a-window': [
    ['9:5', 'window cannot be combined with concurrency; remove it, or write both as entries of limits'],
  ],
  'concurrency-too-large': [
    [
      '8:18',
      'concurrency is 10001; expected: instead of limit and window: how many requests may be in flight at once, a whole number from 1 to 10000',
    ],
  ],
  'concurrency-with-cost': [['9:5', 'cost cannot be combined with concurrency; remove it']],
  'cost-above-an-override': [
    [
      '12:47',
      'a request costs 5 and an override allows 4, so none could ever pass; write a larger limit, or a smaller cost',
    ],
  ],
  'duplicate-identifier': [['5:3', 'ip appears twice; keep one']],
  'duplicate-key': [['11:5', 'limit appears twice; keep one']],
  'duplicate-top-key': [['11:1', 'version appears twice; keep one']],
  'empty-value': [['9:5', `limit is empty; expected: ${LIMIT}`]],
  empty: [['1:1', `the file is empty; expected: ${FILE}`]],
  'exclude-not-a-list': [
    ['5:10', 'exclude is "GET /health"; expected: a list of routes that are never limited'],
  ],
  'exclude-path': [['7:5', 'path "health" does not begin with /; write /PATH, or * for every path']],
  'headers-unknown': [
    [
      '11:14',
      'headers is "none"; expected: on (the default) or off: whether replies have limit headers for this policy',
    ],
  ],
  'identifier-list-of-one': [
    ['8:17', 'identifier is ["ip"]; expected: the name of an entry under identifiers, path.NAME'],
  ],
  'identifier-parameter-missing': [
    [
      '8:27',
      'the route "POST /api/{itemId}" has no {workspaceId}; write {workspaceId} at its place in the path',
    ],
  ],
  'identifier-parameter-twice': [
    ['8:17', '{id} appears twice in the route "POST /api/{id}/{id}"; give one of them another name'],
  ],
  'identifier-two-addresses': [
    ['9:17', 'two of these identifiers are addresses; keep the one with the longer ipv6Prefix'],
  ],
  'source-parameter-beside-others': [
    [
      '5:19',
      'a path parameter must be the only source; give the other sources an identifier of their own, and write a list of both in the policy',
    ],
  ],
  'source-query-name': [['5:19', `source is [{"query":"a=b"}]; expected: ${SOURCE}`]],
  'identifier-name': [
    ['4:3', `API_Key cannot be a name here; expected: how clients are identified: ${IDENTIFIERS}`],
  ],
  'identifier-numeric-name': [['4:16', `source is "client"; expected: ${SOURCE}`]],
  'identifier-proto': [
    ['4:3', `__proto__ cannot be a name here; expected: how clients are identified: ${IDENTIFIERS}`],
  ],
  'everyone-as-a-name': [['3:3', 'everyone already means all clients together; choose another name']],
  'everyone-in-a-list': [
    ['7:17', 'everyone cannot be combined with others; write identifier: everyone, or leave it out'],
  ],
  'everyone-with-overrides': [
    ['8:5', 'a rollout chooses clients, and everyone is counted together; remove it'],
    ['14:9', 'overrides are for single clients, and everyone is counted together; remove them'],
  ],
  'identifier-unknown': [['8:17', 'unknown identifier api_key; identifiers has: ip, api-key, everyone']],
  'identifiers-empty': [['2:14', `identifiers is {}; expected: how clients are identified: ${IDENTIFIERS}`]],
  'ignore-case-on-address': [
    [
      '3:33',
      'ignoreCase is only for sources header, bearer, cookie and query; remove it; for parts of the path, write ignoreCase: true at the top of the file',
    ],
    [
      '4:39',
      'ignoreCase is only for sources header, bearer, cookie and query; remove it; for parts of the path, write ignoreCase: true at the top of the file',
    ],
  ],
  'ipv6-prefix-on-header': [['4:47', 'ipv6Prefix is only for source: client-address; remove it']],
  'ipv6-prefix-range': [
    [
      '3:45',
      'ipv6Prefix is 8; expected: bits of an IPv6 address that make one client, a whole number from 16 to 128; 64 is usual',
    ],
  ],
  'jwt-beside-a-header': [
    ['3:19', 'claims of tokens and plain values cannot be mixed; give the other sources an identifier'],
    ['3:81', 'nowhere.json cannot be read (ENOENT); put the file into the folder of the policy file'],
  ],
  'jwt-in-no-place': [
    ['3:27', 'a token must have exactly one place; write one of bearer: true, header: NAME and cookie: NAME'],
    ['3:47', 'nowhere.json cannot be read (ENOENT); put the file into the folder of the policy file'],
  ],
  'jwt-key-file-elsewhere': [['3:19', 'source is [{"jwt":{"bearer":true,"claim":"sub","jwks":"../keys']],
  'jwt-key-file-missing': [
    ['3:61', 'nowhere.json cannot be read (ENOENT); put the file into the folder of the policy file'],
  ],
  'key-of-a-later-version': [
    ['11:5', `unknown key severity; ${POLICY_KEYS}`],
    ['12:5', `unknown key schedule; ${POLICY_KEYS}`],
    ['13:5', `unknown key quota; ${POLICY_KEYS}`],
  ],
  'limit-fraction': [['9:12', `limit is 5.5; expected: ${LIMIT}`]],
  'limit-huge': [['9:12', `limit is 1000000001; expected: ${LIMIT}`]],
  'limit-infinite': [['9:12', `limit is Infinity; expected: ${LIMIT}`]],
  'limit-negative': [['9:12', `limit is -5; expected: ${LIMIT}`]],
  'limit-text': [['9:12', `limit is "five"; expected: ${LIMIT}`]],
  'limit-too-large-for-its-algorithm': [
    [
      '9:12',
      'limit 1000000 is more than sliding-window can count in 365d; write at most 142808, or a shorter window',
    ],
  ],
  'override-too-large-for-its-algorithm': [
    [
      '12:47',
      'the limit 1000000 of an override is more than sliding-window can count in 365d; write at most 142808, or a shorter window',
    ],
  ],
  'limit-zero': [['9:12', `limit is 0; expected: ${LIMIT}`]],
  'limits-beside-a-limit': [
    ['8:5', 'limit cannot be combined with limits; write it in the entries of limits'],
  ],
  'limits-of-an-unknown-identifier': [
    ['10:45', 'unknown identifier key; identifiers has: ip, everyone'],
    [
      '12:9',
      'limits has two entries for a window of 1m; keep one of them, or give them different identifiers',
    ],
  ],
  'limits-of-the-same-window': [
    [
      '10:9',
      'limits has two entries for a window of 1s; keep one of them, or give them different identifiers',
    ],
  ],
  'limits-with-a-name-in-use': [['10:11', 'the name items.1s is already used in line 5; choose another']],
  'limits-without-a-window': [['9:9', `window is missing; expected: ${WINDOW}`]],
  'list-digest': [['5:5', '"fbk_1" is not a digest; write the 22 characters that the access log shows']],
  'list-entry-of-nobody': [
    ['4:9', 'entry 1 is {}; expected: write { address: CIDR }, { digest: DIGEST } or { file: NAME }'],
  ],
  'list-entry-of-two': [
    ['5:5', 'an entry names one thing; write one of address, digest, userAgent, route and file'],
  ],
  'list-network': [
    ['5:5', '"example.com" is neither an address nor a network; write an address or a network such as'],
  ],
  'list-reason': [
    [
      '5:34',
      'reason is "gone\u007f"; expected: the reason shown to the client: one line of at most 200 characters, without control characters',
    ],
  ],
  'list-route': [['5:5', '"/admin" is not a route; it must be METHODS PATH']],
  'list-program-of-allowed': [['5:7', 'unknown key userAgent; allowed here: address, digest, file']],
  'list-route-of-allowed': [['5:7', 'unknown key route; allowed here: address, digest, file']],
  'list-route-twice': [['6:5', '* /admin/* appears twice in allow and deny; keep one of them']],
  'list-status': [
    ['5:34', 'status is 404; expected: 403 or 429; unless given, it is 429 for a client and 403 for a route'],
  ],
  'list-status-of-allowed': [['5:26', 'unknown key status; allowed here: address, digest, file']],
  'list-twice': [['7:5', '10.0.0.0/8 appears twice in allow and deny; keep one of them']],
  'many-mistakes': [
    [
      '3:45',
      'ipv6Prefix is 200; expected: bits of an IPv6 address that make one client, a whole number from 16 to 128; 64 is usual',
    ],
    ['5:24', 'entry 2 is 7; expected: METHODS PATH, such as OPTIONS * or GET /health'],
    ['7:5', `window is missing; expected: ${WINDOW}`],
    ['10:12', `limit is 0; expected: ${LIMIT}`],
    ['11:5', 'unknown key windows; did you mean window?'],
    ['12:5', `route is missing; expected: ${ROUTE}`],
    ['12:5', 'identifier is missing; expected: the name of an entry under identifiers'],
    ['12:5', `limit is missing; expected: ${LIMIT}`],
    ['12:5', `window is missing; expected: ${WINDOW}`],
  ],
  'many-references': [
    ['5:11', `method "get" is unknown; ${METHODS}`],
    ['8:12', 'path "api/items" does not begin with /; write /PATH, or * for every path'],
    ['9:17', 'unknown identifier ipp; identifiers has: ip, api-key, everyone'],
    ['11:13', 'window 400d is too long; write at most 366d'],
  ],
  'merge-key': [
    ['12:5', `route is missing; expected: ${ROUTE}`],
    ['12:5', 'identifier is missing; expected: the name of an entry under identifiers'],
    ['12:5', `unknown key <<; ${POLICY_KEYS}`],
    ['12:5', `limit is missing; expected: ${LIMIT}`],
    ['12:5', `window is missing; expected: ${WINDOW}`],
  ],
  'method-head': [['7:12', 'HEAD counts as GET; write GET']],
  'method-lower-case': [['7:12', `method "post" is unknown; ${METHODS}`]],
  'method-twice': [['7:12', 'method POST appears twice; write it once']],
  'method-unknown': [['7:12', `method "PSOT" is unknown; ${METHODS}`]],
  'methods-spaced': [
    [
      '7:12',
      '"GET, POST /api/items" is not a route; it must be METHODS PATH, such as "POST /api/items" or "GET,PUT /api/items/*"',
    ],
  ],
  'missing-identifiers': [
    ['1:1', `identifiers is missing; expected: how clients are identified: ${IDENTIFIERS}`],
  ],
  'missing-policies': [['1:1', 'policies is missing; expected: a list of policies']],
  'missing-policy-keys': [
    ['6:5', `route is missing; expected: ${ROUTE}`],
    ['6:5', 'identifier is missing; expected: the name of an entry under identifiers'],
    ['6:5', `limit is missing; expected: ${LIMIT}`],
    ['6:5', `window is missing; expected: ${WINDOW}`],
  ],
  'missing-source': [['3:7', `source is missing; expected: ${SOURCE}`]],
  'missing-version': [['1:1', 'version is missing; expected: write version: 1']],
  'mode-unknown': [
    [
      '11:11',
      'mode is "dry-run"; expected: enforce (the default), or shadow to count and report without denying',
    ],
  ],
  'not-a-map': [['1:1', `the file is ["POST /api/items"]; expected: ${FILE}`]],
  'not-yaml': [
    [
      '10:5',
      'not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
  ],
  'on-store-failure-unknown': [
    [
      '11:21',
      'onStoreFailure is "open"; expected: allow, deny, or local (the default: counters of this process, limit divided by replicas)',
    ],
  ],
  'only-comments': [['1:1', `the file is empty; expected: ${FILE}`]],
  'override-address': [
    [
      '10:24',
      '"10.0.0/8" is neither an address nor a network; write an address or a network such as 10.0.0.0/8 or 2001:db8::/32',
    ],
  ],
  'override-digest': [
    ['10:24', '"somebody" is not a digest; write the 22 characters that floodgate explain shows as identity'],
  ],
  'program-names': [
    ['6:5', 'gptbot appears twice in allow and deny; keep one of them'],
    ['7:5', '"Mozilla/5.0 (compatible)" is not the name of a program; write one word of its User-Agent'],
    ['8:5', '"1.0" is not the name of a program'],
    ['17:16', 'userAgent CURL appears twice; keep one of them'],
    [
      '18:49',
      'anybody can write any User-Agent, and this one would have 50 instead of 10; write a limit below that of the policy',
    ],
  ],
  'override-for-nobody': [
    [
      '10:24',
      'for is {}; expected: write { address: CIDR }, { digest: DIGEST }, { plan: NAME } or { userAgent: NAME }',
    ],
  ],
  'override-limit': [['10:56', `limit is 0; expected: ${LIMIT}`]],
  'override-plan-name': [['11:24', '"gold plan" is not a plan name; write letters, digits']],
  'override-plan-without-header': [
    ['10:24', 'nothing names plans; write plan: { header: NAME } or plans: { file: NAME } at the top'],
  ],
  'override-twice': [['12:16', 'address 10.1.2.3/8 appears twice; keep one of them']],
  'overrides-file-missing': [
    ['10:20', 'nowhere.txt cannot be read (ENOENT); put the file into the folder of the policy file'],
  ],
  'overrides-in-two-places': [['11:5', 'overrides are given in two places; keep overrides or overridesFile']],
  'plan-header-name': [['4:17', 'header is "x plan"; expected: the name of a header field, such as x-plan']],
  'path-dot-segment': [['7:12', `segment ".." ${LITERAL}`]],
  'path-empty-segment': [
    [
      '7:12',
      'path "/api//items" has an empty segment; remove the slash; matching ignores repeated and trailing slashes',
    ],
  ],
  'path-encoded-slash': [
    ['7:12', 'segment "api%2Fitems" can match no request: the path contains an encoded slash (%2F)'],
  ],
  'path-encoded-twice': [
    ['7:12', 'segment "%2569tems" can match no request: the path is percent-encoded twice'],
  ],
  'path-missing': [
    [
      '7:12',
      '"POST" is not a route; it must be METHODS PATH, such as "POST /api/items" or "GET,PUT /api/items/*"',
    ],
  ],
  'path-of-a-url': [
    ['7:12', 'path "https://example.com/api/items" does not begin with /; write /PATH, or * for every path'],
  ],
  'path-partial-wildcard': [['7:12', `segment "item*" ${LITERAL}`]],
  'path-regular-expression': [['7:12', `segment "item(s)?" ${LITERAL}`]],
  'path-relative': [['7:12', 'path "api/items" does not begin with /; write /PATH, or * for every path']],
  'path-too-long': [
    ['7:12', `route is "POST /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...; expected: ${ROUTE}`],
  ],
  'path-trailing-slash': [
    [
      '7:12',
      'path "/api/items/" has an empty segment; remove the slash; matching ignores repeated and trailing slashes',
    ],
  ],
  'path-wildcard-inside': [['7:12', '* matches the rest of the path; it must be the last segment']],
  'path-with-query': [['7:12', `segment "items?all" ${LITERAL}`]],
  'priority-unknown': [
    ['4:10', 'protect is "yes"; expected: on to admit fewer requests at once'],
    ['11:15', 'priority is "urgent"; expected: with protect: who waits behind the others'],
  ],
  'policies-not-a-list': [
    ['6:3', 'policies is {"items":{"route":"POST /api/items"}}; expected: a list of policies'],
  ],
  'policy-name-duplicate': [['11:11', 'the name items is already used in line 6; choose another']],
  'policy-name': [
    [
      '6:11',
      'name is "Items and more"; expected: a unique name: lower-case letters, digits, dots, dashes and underscores, at most 64',
    ],
  ],
  'source-empty': [['4:22', `source is []; expected: ${SOURCE}`]],
  'source-entry': [['4:22', `source is [{"form":"session"},{"bearer":"fbk_"}]; expected: ${SOURCE}`]],
  'source-header-name': [
    ['4:22', `source is [{"header":"x api key"},{"bearer":"fbk_"}]; expected: ${SOURCE}`],
  ],
  'source-unknown': [['3:17', `source is "address"; expected: ${SOURCE}`]],
  tab: [['9:1', 'not valid YAML: tabs cannot be used for indentation; use spaces']],
  text: [['1:1', `the file is "a plain sentence"; expected: ${FILE}`]],
  'two-documents': [['11:1', 'not valid YAML: a second document begins here; keep one, without ---']],
  'unknown-identifier-key': [['3:33', 'unknown key ipv6prefix; did you mean ipv6Prefix?']],
  'unknown-key-far': [['5:1', `unknown key upstream; ${FILE_KEYS}`]],
  'unknown-key': [['5:1', 'unknown key excludes; did you mean exclude?']],
  'unknown-policy-key': [
    ['6:5', `limit is missing; expected: ${LIMIT}`],
    ['9:5', 'unknown key limt; did you mean limit?'],
  ],
  'unreachable-by-two': [
    [
      '8:12',
      'unreachable: exclude removes "GET /api/*" and "* /api/{any}", so nothing is left of this route; remove one of them',
    ],
  ],
  'unreachable-by-deny': [
    ['8:12', 'unreachable: deny refuses "* /admin/*", so nothing is left of this route; remove one of them'],
  ],
  unreachable: [
    [
      '9:12',
      'unreachable: exclude removes "POST /api/*", so nothing is left of this route; remove one of them',
    ],
  ],
  'burst-of-a-window': [['11:5', 'burst is only for algorithm: token-bucket; remove it, or add that line']],
  'burst-too-large': [
    [
      '12:12',
      'burst 1000000 is more than token-bucket can count in 365d; write at most 142808, or a shorter window',
    ],
  ],
  'calendar-units': [
    ['9:13', `window is "year"; expected: ${WINDOW}`],
    ['15:30', `within is "day"; expected: ${DURATION}`],
    ['15:40', `for is "week"; expected: ${DURATION}`],
  ],
  'calendar-windows': [
    [
      '10:5',
      'a calendar month cannot be a sliding-window; remove algorithm, or write a length such as 30d as the window',
    ],
    ['16:5', 'a calendar day cannot have a burst; remove it'],
    [
      '22:35',
      'a calendar week cannot be a token-bucket; remove algorithm, or write a length such as 30d as the window',
    ],
    [
      '23:9',
      'limits has two entries for a window of day; keep one of them, or give them different identifiers',
    ],
    [
      '29:13',
      `bucket listed.day is shared with listed.day in line 21, which has a different algorithm; ${UNEQUAL}`,
    ],
  ],
  'colon-in-value': [
    ['7:12', 'not valid YAML: a second "key: value" within a value; put a value with a colon in quotes'],
  ],
  'ignore-case-text': [
    [
      '5:13',
      'ignoreCase is "yes"; expected: true if the application treats /LOGIN like /login; false is the default',
    ],
  ],
  'indented-too-far': [['6:11', 'give the keys of one entry the same indentation']],
  'indented-too-little': [['7:1', 'give the keys of one entry the same indentation']],
  'latin-1': [['6:11', 'text that is not UTF-8; save the file in the encoding UTF-8']],
  'no-space-after-colon': [['9:5', 'this line is not "key: value"; write a colon and a space']],
  'path-colon': [
    ['7:12', 'segment ":id" begins with a colon; write {param} for any one segment, and a literal : as %3A'],
  ],
  'replies-page-missing': [
    ['2:18', 'nowhere.html cannot be read (ENOENT); put the file into the folder of the policy file'],
  ],
  'reserved-character': [['7:12', 'put the value in quotes']],
  'tab-behind-spaces': [['7:1', 'not valid YAML: tabs cannot be used for indentation; use spaces']],
  'unquoted-brace': [['7:16', `put a value that begins with {, [, " or ' in quotes as a whole`]],
  'unquoted-star': [['7:12', 'put a value that begins with * in quotes']],
  'version-2': [['1:10', 'version is 2; expected: write version: 1']],
  'version-text': [['1:10', 'version is "1"; expected: write version: 1']],
  'timezone-of-nowhere': [
    [
      '2:11',
      'Mars/Olympus is not a time zone that this version of Node knows; write a name of the IANA database, such as Europe/Berlin or UTC',
    ],
  ],
  'timezone-offset': [
    [
      '2:11',
      'timezone is "+02:00"; expected: the time zone of calendar windows, such as Europe/Berlin; UTC unless given',
    ],
  ],
  'timezone-unknown': [
    ['2:11', 'Germany/Berlin is not a time zone that this version of Node knows; write Europe/Berlin'],
    ['9:12', LIMIT],
  ],
  'window-fraction': [['10:13', `window is "1.5h"; expected: ${WINDOW}`]],
  'window-number': [['10:13', `window is 60; expected: ${WINDOW}`]],
  'window-spaced': [['10:13', `window is "1 minute"; expected: ${WINDOW}`]],
  'window-too-long': [['10:13', 'window 367d is too long; write at most 366d']],
  'window-unit': [['10:13', `window is "1w"; expected: ${WINDOW}`]],
  'window-zero': [['10:13', `window is "0m"; expected: ${WINDOW}`]],
};

function problemsOf(t: Test, text: string): readonly Problem[] {
  try {
    loadPolicies(text, 'policies.yaml');
  } catch (error) {
    if (error instanceof PolicyFileError) return error.problems;
    throw error;
  }
  t.fail('the file was accepted');
  return [];
}

t.test('every fixture has an expectation, and every expectation a fixture', async (t) => {
  t.strictSame([...files.keys()].sort(), Object.keys(MISTAKES).sort());
});

for (const [name, mistakes] of Object.entries(MISTAKES)) {
  t.test(`${name}: refused with line, column and fix`, async (t) => {
    const problems = problemsOf(t, fixture(name));
    t.equal(problems.length, mistakes.length, 'only the mistakes themselves, no consequences of them');
    for (const [i, [at, mention]] of mistakes.entries()) {
      const {
        line,
        column,
        message: what,
        fix,
      } = problems[i] ?? { line: 0, column: 0, message: '', fix: '' };
      t.not(fix, '', 'the mistake has a fix');
      const message = `${what}; ${fix}`;
      t.equal(`${line}:${column}`, at, message);
      t.ok(message.includes(mention), `${message} (must mention: ${mention})`);
    }
  });
}

t.test('reports all mistakes at once: of the shape and of the values', async (t) => {
  const problems = problemsOf(
    t,
    `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }], colour: red }
exclude: [GET /free, 5, FETCH /a]
policies:
  - { name: one, route: GET /one, identifier: nobody, limit: 0, window: 1m }
  - { name: two, route: GET two, identifier: key, limit: 5, window: 1m }
  - { name: three, route: GET /three, identifier: [key, path.id], limit: 5, window: 1m }
  - { name: one, route: GET /four, identifier: ip, limit: 5, window: 1m, host: a.example }
  - { route: GET /free, identifier: ip, limit: 5, window: 1m }
  - 7
tests:
  - { name: gone, request: GET /one, expect: { policies: [five] } }
`,
  );
  t.strictSame(
    problems.map(({ line, message }) => `${line} ${message}`),
    [
      '4 unknown key colour',
      '5 entry 2 is 5',
      '5 method "FETCH" is unknown',
      '7 unknown identifier nobody',
      '7 limit is 0',
      '8 path "two" does not begin with /',
      '9 the route "GET /three" has no {id}',
      '10 the name one is already used in line 7',
      '10 unknown key host',
      '11 name is missing',
      '11 unreachable: exclude removes "GET /free", so nothing is left of this route',
      '12 entry 6 is 7',
    ],
  );
  t.match(
    problems.find(({ message }) => message === 'unknown key host')?.fix,
    /policies apply to every host/,
  );
});

t.test('the error has the format of compilers: file, line, column', async (t) => {
  const text = fixture('limit-zero');
  t.throws(() => loadPolicies(text, 'edge/policies.yaml'), {
    name: 'PolicyFileError',
    file: 'edge/policies.yaml',
    message: `edge/policies.yaml:9:12: limit is 0; expected: ${LIMIT}`,
  });
});

t.test('does not parse a file over 1 MiB', async (t) => {
  const problems = problemsOf(t, `${VALID}#${'x'.repeat(1_048_576)}`);
  t.match(problems, [{ line: 1, column: 1, message: /at most 1 MiB/ }]);
});

t.test('refuses endless brackets without a crash', async (t) => {
  // This text is not a fixture file, because linters overflow on it.
  const problems = problemsOf(t, '['.repeat(4000));
  t.match(problems, [{ line: 1, message: /brackets are nested too deeply/, fix: 'close them' }]);
});

t.test('refuses a file full of aliases in linear time', async (t) => {
  const problems = problemsOf(t, `version: &v 1\npolicies: [${'*v, '.repeat(100_000)}]\n`);
  t.match(problems, [{ line: 2, column: 12, message: /expand to too many values/ }]);
});

t.test('names a NUL, which is valid UTF-8', async (t) => {
  t.match(problemsOf(t, 'version: 1\npolicies: [\0]\n'), [
    { line: 2, column: 12, message: 'a NUL character', fix: /^remove it, or save the file in UTF-8/ },
  ]);
});

const VALID = `version: 1
identifiers:
  ip: { source: client-address }
policies:
  - name: items
    route: POST /api/items
    identifier: ip
    limit: 5
    window: 1m
`;

t.test('fills in every default of a valid file', async (t) => {
  const set = loadPolicies(VALID, 'policies.yaml');
  t.equal(set.file, 'policies.yaml');
  t.strictSame(set.exclude, []);
  t.strictSame(set.identifiers, [{ name: 'ip', kind: 'address', ipv6Prefix: 64 }]);
  t.match(set.policies, [
    {
      name: 'items',
      index: 0,
      line: 5,
      route: { text: 'POST /api/items' },
      identifier: set.identifiers[0],
      limit: 5,
      windowMs: 60_000,
      windowSeconds: 60,
      bucket: 'items',
      bucketId: 0,
      mode: 'enforce',
      onStoreFailure: 'local',
      headers: true,
    },
  ]);
});

t.test('accepts comments, anchors, flow style, JSON, CRLF and a byte order mark', async (t) => {
  const written = [
    `# a comment\n${VALID}    # another one\n`,
    `\ufeff${VALID.replaceAll('\n', '\r\n')}`,
    `version: 1
identifiers: { ip: &everybody { source: client-address } }
policies: [{ name: items, route: POST /api/items, identifier: ip, limit: 5, window: 1m }]
`,
    JSON.stringify({
      version: 1,
      identifiers: { ip: { source: 'client-address' } },
      policies: [{ name: 'items', route: 'POST /api/items', identifier: 'ip', limit: 5, window: '1m' }],
    }),
  ];
  const [expected] = loadPolicies(VALID, 'f').policies;
  for (const text of written)
    t.strictSame(
      { ...loadPolicies(text, 'f').policies[0], line: 5 },
      expected,
      JSON.stringify(text.slice(0, 20)),
    );
});

t.test('an anchor repeats a value', async (t) => {
  const text = VALID.replace('limit: 5', 'limit: &few 5').concat(
    '  - { name: others, route: POST /api/others, identifier: ip, limit: *few, window: 1m }\n',
  );
  t.strictSame(
    loadPolicies(text, 'f').policies.map(({ limit }) => limit),
    [5, 5],
  );
});

t.test('windows are whole seconds', async (t) => {
  const cases = { '1s': 1, '90s': 90, '1m': 60, '60m': 3600, '1h': 3600, '1d': 86_400, '366d': 31_622_400 };
  for (const [window, seconds] of Object.entries(cases)) {
    const [policy] = loadPolicies(VALID.replace('1m', window), 'f').policies;
    t.equal(policy?.windowSeconds, seconds, window);
    t.equal(policy?.windowMs, seconds * 1000, window);
  }
});

t.test('reads the options of a policy', async (t) => {
  const option = (text: string) => loadPolicies(`${VALID}    ${text}\n`, 'f').policies[0];
  t.equal(option('mode: shadow')?.mode, 'shadow');
  t.equal(option('mode: enforce')?.mode, 'enforce');
  for (const rule of ['allow', 'deny', 'local'])
    t.equal(option(`onStoreFailure: ${rule}`)?.onStoreFailure, rule);
  for (const off of ['off', 'false']) t.equal(option(`headers: ${off}`)?.headers, false, off);
  for (const on of ['on', 'true']) t.equal(option(`headers: ${on}`)?.headers, true, on);
  t.equal(option('bucket: b')?.bucket, 'b');
});

t.test('reads identifiers: addresses by prefix, credentials by header or bearer', async (t) => {
  const text = VALID.replace(
    '{ source: client-address }',
    '{ source: client-address, ipv6Prefix: 56 }\n  key: { source: [{ header: X-API-Key }, { bearer: fbk_ }, { bearer: "" }] }',
  );
  t.strictSame(loadPolicies(text, 'f').identifiers, [
    { name: 'ip', kind: 'address', ipv6Prefix: 56 },
    {
      name: 'key',
      kind: 'credential',
      sources: [
        { kind: 'header', header: 'x-api-key' },
        { kind: 'bearer', prefix: 'fbk_' },
        { kind: 'bearer', prefix: '' },
      ],
    },
  ]);
});

t.test('reads identifiers: cookies, query parameters, parts of the path, and several in one', async (t) => {
  const text = `version: 1
identifiers:
  ip: { source: client-address }
  session: { source: [{ cookie: sid }, { query: Token }] }
  workspace: { source: [{ path: workspaceId }] }
policies:
  - { name: a, route: "GET /a/{workspaceId}/*", identifier: workspace, limit: 5, window: 1m, bucket: w }
  - { name: b, route: "GET /b/c/{workspaceId}", identifier: workspace, limit: 5, window: 1m, bucket: w }
  - { name: c, route: "GET /a/{workspaceId}/c", identifier: [session, path.workspaceId], limit: 5, window: 1m }
  - { name: d, route: "GET /a/{workspaceId}/d", identifier: [session, path.workspaceId], limit: 5, window: 1m }
  - { name: e, route: "GET /files/{name*}", identifier: [ip, path.name], limit: 5, window: 1m }
`;
  const { identifiers, policies } = loadPolicies(text, 'f');
  t.match(identifiers, [
    { name: 'ip' },
    {
      kind: 'credential',
      sources: [
        { kind: 'cookie', cookie: 'sid' },
        { kind: 'query', parameter: 'Token' },
      ],
    },
  ]);
  const [a, b, c, d, e] = policies.map(({ identifier }) => identifier);
  t.match(a, { name: 'workspace', kind: 'path', param: 'workspaceId', at: 1, takesRest: false });
  t.match(b, { at: 2 });
  t.match(c, { name: 'session+path.workspaceId', kind: 'combined', proofAt: 0 });
  t.equal(c, d, 'equal identifiers are one object');
  t.match(e, { proofAt: 1, parts: [{ kind: 'address' }, { kind: 'path', at: 1, takesRest: true }] });
});

t.test('rows that share a bucket use the limit of the first such row', async (t) => {
  const set = loadPolicies(
    `${VALID}  - { name: b, route: POST /b, identifier: ip, limit: 5, window: 60s, bucket: items }
  - { name: c, route: POST /c, identifier: ip, limit: 7, window: 1m, bucket: both }
  - { name: d, route: POST /d, identifier: ip, limit: 7, window: 1m, bucket: both }
`,
    'f',
  );
  t.strictSame(
    set.policies.map(({ bucket, bucketId }) => [bucket, bucketId]),
    [
      ['items', 0],
      ['items', 0],
      ['both', 2],
      ['both', 2],
    ],
  );
});

t.test('a file without policies limits nothing, and an exclusion may leave part of a route', async (t) => {
  t.strictSame(loadPolicies(VALID.replace(/policies:.*/s, 'policies: []'), 'f').policies, []);
  const partly = VALID.replace('policies:', 'exclude: [POST /api/items/*, GET /api/*]\npolicies:').replace(
    'POST /api/items\n',
    'GET,POST /api/*\n',
  );
  t.equal(loadPolicies(partly, 'f').policies.length, 1);
});

t.test('several limits of a row become policies that differ only in the limit', async (t) => {
  const { policies } = loadPolicies(
    `version: 1
plan: { header: x-plan }
identifiers:
  ip: { source: client-address }
policies:
  - name: items
    route: GET /items
    identifier: ip
    rollout: 40%
    mode: shadow
    cost: 2
    bucket: shared
    limits:
      - { limit: 10, window: 1s, algorithm: token-bucket, burst: 4 }
      - { limit: 100, window: 1m, overrides: [{ for: { plan: gold }, limit: 300 }] }
      - { concurrency: 5 }
  - { name: last, route: GET /last, identifier: ip, concurrency: 7, overrides: [{ for: { plan: gold }, limit: 30 }] }
`,
    'p.yaml',
  );
  t.strictSame(
    policies.map(
      ({ name, index, line, bucket, limit, capacity, algorithm, windowSeconds, cost, mode, overrides }) => [
        name,
        index,
        line,
        bucket,
        limit,
        capacity,
        algorithm,
        windowSeconds,
        cost.kind === 'units' ? cost.units : cost.kind,
        mode,
        overrides?.plans.get('gold') ?? null,
      ],
    ),
    [
      ['items.1s', 0, 14, 'shared.1s', 10, 4, 'token-bucket', 1, 2, 'shadow', null],
      ['items.1m', 1, 15, 'shared.1m', 100, 100, 'fixed-window', 60, 2, 'shadow', 300],
      ['items.concurrency', 2, 16, 'shared.concurrency', 5, 5, 'concurrency', 0, 1, 'shadow', null],
      ['last', 3, 17, 'last', 7, 7, 'concurrency', 0, 1, 'enforce', 30],
    ],
  );
  const [first, second] = policies.map(({ rollout }) => rollout);
  t.strictSame(first, second, 'the identifiers are equal');
});

t.test('deny has at most 1,000 routes', (t) => {
  const text = (routes: number): string =>
    `version: 1
identifiers: { ip: { source: client-address } }
deny: [${Array.from({ length: routes }, (_, i) => `{ route: GET /${i} }`).join(', ')}]
policies: []
`;
  t.equal(loadPolicies(text(1000), 'p.yaml').lists?.routes.length, 1000);
  t.throws(() => loadPolicies(text(1001), 'p.yaml'), { message: /deny has more than 1000 routes/ });
  t.end();
});
