/** Replies and bodies that no schema of a route describes: text and bytes that go past the serialiser, and redirects. */

export interface RawOperation {
  /** Status -> what comes with it; other errors are those of the surface unless `isAlone`. */
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
  readonly requestBody?: object;
  readonly isAlone?: boolean;
}

const binary = { type: 'string', format: 'binary' };
const html = { 'text/html': { schema: { type: 'string' } } };
const xml = { 'application/xml': { schema: { type: 'string' } } };

const page: RawOperation = { responses: { 200: { description: 'A page.', content: html } } };
const redirect: RawOperation = {
  responses: { 302: { description: 'To a page, in `location`.' } },
  isAlone: true,
};
const login: RawOperation = {
  responses: {
    200: {
      description: 'With `json: true` in the body: where to go next; the session comes as a cookie.',
      content: {
        'application/json': {
          schema: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
        },
      },
    },
    302: { description: 'Without it: to a page, in `location`.' },
    401: { description: 'With `json: true`: refused; the address says why.' },
  },
};
const script: RawOperation = {
  responses: {
    200: {
      description: 'The script; where there is none, one that says so on the console.',
      content: { 'text/javascript': { schema: { type: 'string' } } },
    },
    304: { description: 'Not changed since the reply whose `etag` came as `if-none-match`.' },
  },
};
const state: RawOperation = {
  responses: {
    200: {
      description: 'May be cached for a minute.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/WorkspaceState' } } },
    },
    304: { description: 'Not changed since the reply whose `etag` came as `if-none-match`.' },
  },
};

const accept: RawOperation = {
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['token', 'csrfToken'],
          properties: {
            token: { type: 'string', description: 'What follows `token=` in the link of the invite.' },
            csrfToken: { type: 'string', description: 'That of `GET /api/auth/csrf`, with its cookie.' },
            name: { type: 'string', description: 'Of a new account.' },
            password: { type: 'string', description: 'Of a new account.' },
            callbackUrl: { type: 'string' },
            json: { type: 'boolean', description: 'Answer with JSON instead of a redirect.' },
          },
        },
      },
    },
  },
  responses: {
    ...login.responses,
    401: { description: 'The address has an account: its owner must be logged in.' },
    403: { description: 'The account is switched off.' },
    409: { description: 'The organization has as many members as it can have.' },
  },
};

export const rawOperations: Readonly<Record<string, RawOperation>> = {
  'GET /api/v1/client/og': {
    responses: { 200: { description: 'The image.', content: { 'image/png': { schema: binary } } } },
  },
  'GET /api/v1/client/{workspaceId}/environment': state,
  'GET /api/v2/client/{workspaceId}/environment': state,
  'GET /api/v1/client/{workspaceId}/app/environment': state,
  'GET /api/v1/client/{workspaceId}/website/environment': state,

  'POST /api/v1/client/{workspaceId}/storage/upload': {
    requestBody: {
      required: true,
      description: 'The granted form fields as they came, then the file as the last part, `file`.',
      content: {
        'multipart/form-data': {
          schema: { type: 'object', required: ['file'], properties: { file: binary } },
        },
      },
    },
    responses: {
      201: { description: 'Stored.', content: xml },
      400: { description: 'The file is too large, or the form is not a complete one.', content: xml },
      403: { description: 'The fields were not granted by us, were changed, or are too old.', content: xml },
      503: { description: 'Too busy, or the disk refuses; Retry-After may say for how long.', content: xml },
    },
    isAlone: true,
  },
  'GET /storage/{workspaceId}/{accessType}/{fileName}': {
    responses: {
      200: { description: 'The file.', content: { 'application/octet-stream': { schema: binary } } },
      206: {
        description: 'The part that `Range` asked for.',
        content: { 'application/octet-stream': { schema: binary } },
      },
    },
  },

  'GET /api/auth/signin': redirect,
  'GET /api/auth/error': redirect,
  'POST /api/auth/callback/credentials': login,
  'POST /api/auth/callback/token': login,
  'POST /api/auth/signout': login,
  'POST /api/auth/accept-invite': accept,
  'GET /invite': page,
  'GET /auth/login': page,
  'GET /auth/signup': page,
  'GET /auth/verify': page,
  'GET /auth/verification-requested': page,
  'GET /auth/forgot-password': page,
  'GET /auth/forgot-password/email-sent': page,
  'GET /auth/forgot-password/reset': page,
  'GET /verify-email-change': page,
  'GET /account': page,
  'GET /account/api-keys': redirect,
  'POST /account/api-keys': page,
  'POST /account/api-keys/{id}/revoke': redirect,
  'GET /s/{surveyId}': {
    responses: {
      302: { description: 'To the address of SURVEY_URL.' },
      404: { description: 'A page that says that there is none.', content: html },
    },
    isAlone: true,
  },
  'GET /': { responses: { 200: { description: 'A page for browsers, else JSON.', content: html } } },
  'GET /js/{script}': script,
  'GET /api/packages/js': script,
  'GET /api/packages/app': script,
  'GET /api/packages/website': script,
  'GET /api/packages/surveys': script,
};
