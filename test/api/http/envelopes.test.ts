import t from 'tap';
import {
  type ApiError,
  badRequest,
  conflict,
  forbidden,
  internalError,
  invalidFields,
  malformedJson,
  methodNotAllowed,
  NO_ACCESS,
  notAuthenticated,
  notFound,
  payloadTooLarge,
  routeNotFound,
  UNSUPPORTED_FIELD,
  unauthorized,
} from '#api/errors.ts';
import { type ErrorContext, toErrorReply } from '#api/http/envelopes.ts';

const context = { requestId: 'r1', path: '/p', showsParserText: false } as const;
const reply = (error: ApiError, errorShape: ErrorContext['errorShape']) =>
  toErrorReply(error, { ...context, errorShape });

/** Each row has an error, its status in A and C, its code in A, its status in B, and its details in B. */
const cases: readonly (readonly [ApiError, number, string, number, unknown])[] = [
  [badRequest('No', { a: 'b' }), 400, 'bad_request', 400, [{ field: 'a', issue: 'b' }]],
  [badRequest('No'), 400, 'bad_request', 400, [{ field: 'error', issue: 'No' }]],
  [invalidFields({ 'a.b': 'Required' }), 400, 'bad_request', 422, [{ field: 'a.b', issue: 'Required' }]],
  [
    malformedJson('position 3'),
    400,
    'bad_request',
    400,
    [{ field: 'error', issue: 'Malformed JSON input, please check your request body' }],
  ],
  [notAuthenticated(), 401, 'not_authenticated', 401, undefined],
  [unauthorized(), 401, 'unauthorized', 401, undefined],
  [forbidden(NO_ACCESS), 403, 'forbidden', 403, undefined],
  [forbidden('No', { surveyId: 's' }), 403, 'forbidden', 403, [{ field: 'surveyId', issue: 's' }]],
  [forbidden('100 at most'), 403, 'forbidden', 403, [{ field: 'error', issue: '100 at most' }]],
  [notFound('Response', 'r'), 404, 'not_found', 404, [{ field: 'response', issue: 'not found' }]],
  [
    notFound('Workspace', 'w'),
    404,
    'not_found',
    404,
    [{ field: 'workspaceId', issue: 'workspace not found' }],
  ],
  [
    notFound('Attribute Key', 'k'),
    404,
    'not_found',
    404,
    [{ field: 'contactAttributeKey', issue: 'not found' }],
  ],
  [routeNotFound(), 404, 'not_found', 404, [{ field: 'route', issue: routeNotFound().message }]],
  [
    methodNotAllowed('PUT', ['GET', 'POST']),
    405,
    'method_not_allowed',
    405,
    [{ field: 'allowed_methods', issue: 'GET,POST' }],
  ],
  [
    conflict('Taken', { email: 'already exists' }),
    409,
    'conflict',
    409,
    [{ field: 'email', issue: 'already exists' }],
  ],
  [
    payloadTooLarge(),
    413,
    'payload_too_large',
    413,
    [{ field: 'body', issue: 'Request body must not exceed 2097152 bytes' }],
  ],
  [
    internalError(new Error('the database text')),
    500,
    'internal_server_error',
    500,
    [{ field: 'error', issue: 'An error occurred while processing your request. Please try again later.' }],
  ],
];
for (const [error, status, code, statusB, detailsB] of cases) {
  t.test(`${error.code}: ${error.message}`, async (t) => {
    const a = reply(error, 'v1');
    t.equal(a.status, status);
    t.match(a.body, { code, message: String, details: Object });
    const b = reply(error, 'v2');
    t.equal(b.status, statusB);
    t.match(b.body, { error: { code: statusB, message: String } });
    t.strictSame(Reflect.get(Object(Reflect.get(Object(b.body), 'error')), 'details'), detailsB);
    const c = reply(error, 'v3');
    t.equal(c.status, status);
    t.equal(c.contentType, 'application/problem+json; charset=utf-8');
    t.match(c.body, { title: String, status, detail: String, requestId: 'r1', code, instance: '/p' });
    for (const { body } of [a, b, c]) t.notMatch(JSON.stringify(body), /the database text/);
  });
}

t.test('A: malformed JSON gets the message of the parser and that of the route', async (t) => {
  const error = malformedJson('position 3');
  const at = (more: Partial<ErrorContext>) =>
    toErrorReply(error, { ...context, errorShape: 'v1', ...more }).body;
  t.strictSame(at({}), {
    code: 'bad_request',
    message: 'Malformed JSON input, please check your request body',
    details: {},
  });
  t.strictSame(at({ showsParserText: true, malformedJsonMessage: 'Not JSON' }), {
    code: 'bad_request',
    message: 'Not JSON',
    details: { error: 'position 3' },
  });
});

t.test('C: a 401 has no details', async (t) => {
  t.notOk('details' in Object(reply(notAuthenticated(), 'v3').body));
});

t.test('C: mistakes in fields are a list, with a code for unknown ones', async (t) => {
  const body = Object(reply(invalidFields({ 'a.b': 'Required', extra: UNSUPPORTED_FIELD }), 'v3').body);
  t.match(body, { detail: 'Invalid request body' });
  t.strictSame(body.invalid_params, [
    { name: 'a.b', reason: 'Required' },
    { name: 'extra', reason: UNSUPPORTED_FIELD, code: 'unsupported_field' },
  ]);
});

t.test('C: the detail names the part of the request', async (t) => {
  const { body } = toErrorReply(invalidFields({ a: 'b' }), {
    ...context,
    ...{ errorShape: 'v3', part: 'querystring' },
  });
  t.match(body, { detail: 'Invalid query parameters' });
});
