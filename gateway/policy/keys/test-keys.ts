/** The keys of a test, and of what it expects. */
import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { fileKey, propertiesOf } from './key.ts';
import { flag, headerFields, list, object, route, shortText, some, text, whole } from './schema-parts.ts';

export const TEST_DEFAULTS = {
  from: '192.0.2.1',
  times: 1,
  reply: 200,
  regular: false,
  // At the epoch, windows of all lengths begin.
  at: '1970-01-01T00:00:00Z',
} as const;

export const EXPECT_KEYS = {
  policies: fileKey({
    schema: list({ type: 'string' }, 1000, 'the names of all policies that apply'),
    more: 'In any order',
  }),
  allowed: fileKey({
    schema: whole(0, 10_000, 'how many of the requests pass'),
  }),
  marked: fileKey({
    schema: list({ type: 'string' }, 1000, 'the names of all policies that mark the last request'),
    more: 'In any order',
    see: '#telling-the-application-mode-mark',
  }),
  status: fileKey({
    schema: whole(100, 599, 'the status of the last reply, such as 429; that of reply if the request passes'),
  }),
  priority: fileKey({
    schema: { enum: PRIORITIES, description: 'the priority of the request, low, normal or high' },
  }),
  headers: fileKey({
    schema: headerFields(
      'header fields of the last reply that come from the gateway, such as { Retry-After: 60 }',
    ),
    more: 'Other headers are ignored',
  }),
} as const;

const body = { type: 'string', maxLength: 16_384 } as const;

export const TEST_KEYS = {
  name: fileKey({
    schema: shortText(200, 'what the test is about, at most 200 characters'),
  }),
  request: fileKey({ schema: route('METHOD PATH, such as POST /api/items?page=2') }),
  from: fileKey({
    schema: text(
      'the address of the client, such as 192.0.2.1 (the default), or an IPv4 network whose addresses are used in turn',
    ),
    default: TEST_DEFAULTS.from,
  }),
  headers: fileKey({ schema: headerFields('header fields of the request, such as { x-api-key: fbk_1 }') }),
  body: fileKey({
    schema: {
      anyOf: [body, some(body, 100, 'bodies')],
      description:
        'the body of the request, or a list of 1 to 100 bodies that are used in turn; the Content-Type is that of JSON where one begins with {, else of a form',
    },
    more: 'A `Content-Type` among the headers takes precedence',
  }),
  times: fileKey({
    schema: whole(1, 10_000, 'how often the request is made'),
    default: TEST_DEFAULTS.times,
    more: 'All of them are in flight at once. All tests of a file together make at most 10,000',
  }),
  reply: fileKey({
    schema: whole(200, 599, "the status of the application's replies, such as 401 (200 unless given)"),
    default: TEST_DEFAULTS.reply,
  }),
  replyHeaders: fileKey({
    schema: headerFields("header fields of the application's replies, such as { x-tokens: 1200 }"),
    see: '#costs-that-replies-report',
  }),
  replyBytes: fileKey({
    schema: whole(0, 1_000_000_000_000, 'the length of the body of each reply'),
    see: '#bytes-of-replies',
    more: 'Without it, the reserve stays charged',
  }),
  at: fileKey({
    schema: text('the time, such as 2026-11-20T10:00:00Z; 1970-01-01T00:00:00Z unless given'),
    default: TEST_DEFAULTS.at,
    more: 'By default every window begins that is not one of a calendar. The clock does not move during a test',
  }),
  regular: fileKey({
    schema: flag(
      'true if the client was here on enough different days to be a regular; false is the default',
    ),
    default: TEST_DEFAULTS.regular,
    see: '#regulars-first',
  }),
  plan: fileKey({
    schema: text('the plan that a trusted proxy names, such as gold'),
    more: 'The headers of the test count as those of an untrusted client',
  }),
  expect: fileKey({
    schema: {
      ...object(
        [],
        propertiesOf(EXPECT_KEYS),
        'some of policies, allowed, marked, status, priority and headers',
      ),
      minProperties: 1,
    },
  }),
} as const;

export const testSchema = object(
  ['name', 'request', 'expect'],
  propertiesOf(TEST_KEYS),
  'a test has name, request and expect',
);
