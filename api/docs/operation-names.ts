/** The names and groups of operations. A new route gets its name from its method and path. Pure. */

interface OperationNames {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
}

/** Summaries for routes whose method and path are not enough. Keys are paths without the part that `tailOf` removes. */
const summaries: Readonly<Record<string, string>> = {
  'GET /environment': 'Read the state of a workspace: what SDKs show to whom',
  'GET /app/environment': 'Read the state of a workspace (older SDKs)',
  'GET /website/environment': 'Read the state of a workspace (older SDKs)',
  'PUT /displays/{displayId}': 'Link a display to a response or a user',
  'GET /displays/{displayId}/response': 'Read the response to a display',
  'POST /user': 'Identify a user, set attributes, read the state of the user',
  'PUT /contacts/{userId}/attributes': 'Set attributes of a contact (older SDKs)',
  'PUT /people/{userId}/attributes': 'Set attributes of a contact (older SDKs)',
  'GET /identify/contacts/{userId}': 'Read the state of a user (older SDKs)',
  'GET /identify/people/{userId}': 'Read the state of a user (older SDKs)',
  'POST /storage': 'Ask for an upload: an address and the form fields that allow it',
  'POST /storage/upload': 'Upload a file with the fields that were granted',
  'GET /og': 'Draw the preview image of a survey, 800 by 400',
  'GET /me': 'Read whose key or session this is',
  'GET /health': 'Check that the process runs',
  'POST /surveys/{surveyId}/pin': 'Enter the PIN of a survey',
  'GET /ready': 'Check that the service is ready for requests',
  'GET /surveys/{surveyId}/singleUseIds': 'Make links to a survey that work once',
  'POST /surveys/{surveyId}/link-emails': 'Send the link of a survey by e-mail',
  'POST /license/recheck': 'Check the licence again',
  'GET /storage/{workspaceId}/{accessType}/{fileName}': 'Read a file; a private one with a key or a session',
  'DELETE /storage/{workspaceId}/{accessType}/{fileName}': 'Delete a file',
  'GET /app/people/{userId}': 'Read the state of a user (older SDKs)',
  'GET /js/{script}': 'Read a script of the SDK',
  'GET /packages/js': 'Read the script of the SDK (older clients)',
  'GET /packages/app': 'Read the script of the SDK (older clients)',
  'GET /packages/website': 'Read the script of the SDK (older clients)',
  'GET /packages/surveys': 'Read the script that shows surveys (older clients)',
  'GET /': 'What runs here, and whether it is ready; a page for browsers',
  'GET /s/{surveyId}': 'To where a link survey is answered',
  'GET /account': 'The page of the account: workspaces and API keys',
  'GET /account/api-keys': 'To the page of the account',
  'POST /account/api-keys': 'Make an API key, for the page of the account',
  'POST /account/api-keys/{id}/revoke': 'Revoke an API key, for the page of the account',
  'GET /account/workspaces/{workspaceId}/delete': 'The page that asks before a workspace is deleted',
  'POST /account/workspaces/{workspaceId}/delete': 'Delete a workspace, for that page',
  'GET /account/delete': 'The page that asks before the account is deleted',
  'POST /account/delete': 'Delete the account, for that page',
  'GET /auth/csrf': 'Read the token that a login has to repeat',
  'GET /auth/providers': 'List the ways to log in',
  'GET /auth/session': 'Read whose session this is',
  'GET /auth/signin': 'To the login page',
  'GET /auth/error': 'Why a login failed',
  'POST /auth/callback/credentials': 'Log in with e-mail address and password',
  'POST /auth/callback/token': 'Log in with the token of a mail',
  'POST /auth/signout': 'End the session',
  'POST /auth/signup': 'Create an account',
  'POST /auth/resend-verification': 'Send the verification mail again',
  'POST /auth/forgot-password': 'Ask for a mail to choose a new password',
  'POST /auth/reset-password': 'Choose a new password with the token of a mail',
  'GET /auth/signup': 'The page to create an account',
  'GET /auth/verification-requested': 'The page that sends the verification mail again',
  'GET /auth/forgot-password': 'The page to ask for a new password',
  'GET /auth/forgot-password/email-sent': 'The page after asking for a new password',
  'GET /auth/login': 'The login page',
  'GET /auth/verify': 'The page that a verification mail links to',
  'GET /auth/forgot-password/reset': 'The page that a password mail links to',
  'GET /verify-email-change': 'The page that a mail about a new address links to',
  'POST /verify-email-change': 'Change the e-mail address with the token of a mail',
  'PUT /profile/email': 'Ask for another e-mail address',
};

const tags: Readonly<Record<string, string>> = {
  environment: 'Workspace state',
  app: 'Workspace state',
  website: 'Workspace state',
  user: 'Users',
  identify: 'Users',
  og: 'Link previews',
  me: 'Me',
  health: 'Health',
  ready: 'Health',
  storage: 'Files',
  auth: 'Login and accounts',
  'verify-email-change': 'Login and accounts',
  profile: 'Login and accounts',
  license: 'Login and accounts',
  account: 'Login and accounts',
  s: 'Surveys',
  '': 'Health',
  js: 'SDK scripts',
  packages: 'SDK scripts',
  'api-keys': 'API keys',
};

/** @param path in the form of OpenAPI: `/api/v1/management/surveys/{surveyId}` */
export function namesOf(method: string, path: string): OperationNames {
  const tail = tailOf(path);
  const segment = tail.split('/')[1] ?? '';
  const isClient = /^\/api\/v\d\/client\//.test(path);
  const name = tags[segment] ?? capitalized(segment.replaceAll('-', ' '));
  return {
    operationId: operationIdOf(method, path),
    tag: isClient && tags[segment] === undefined ? `${name} (client)` : name,
    summary: summaries[`${method} ${tail}`] ?? summaryOf(method, tail),
  };
}

function tailOf(path: string): string {
  const tail = path
    .replace(/^\/api\/v\d/, '')
    .replace(/^\/api\/(?=auth\/|packages\/)/, '/')
    .replace(/^\/client\/\{[^}]+\}/, '')
    .replace(/^\/(client|management)(?=\/)/, '');
  return tail === '' ? '/' : tail;
}

/**
 * Turns `GET /api/v1/management/surveys/{surveyId}` into `getV1ManagementSurveysBySurveyId`. Each pair has its own id.
 */
function operationIdOf(method: string, path: string): string {
  const words = path
    .replace(/^\/api\//, '/')
    .split('/')
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('{') ? `By-${part.slice(1, -1)}` : part))
    .flatMap((part) => part.split(/[^A-Za-z0-9]+/))
    .filter((part) => part !== '');
  return method.toLowerCase() + words.map(capitalized).join('');
}

function summaryOf(method: string, tail: string): string {
  const parts = tail.split('/').filter((part) => part !== '');
  const isOne = parts.at(-1)?.startsWith('{') ?? false;
  const named = parts.findLast((part) => !part.startsWith('{')) ?? '';
  const plural = named.replaceAll('-', ' ');
  const one = singular(plural);
  switch (method) {
    case 'GET':
      return isOne ? `Read ${article(one)}` : one === plural ? `Read ${plural}` : `List ${plural}`;
    case 'POST':
      return one === plural ? capitalized(plural) : `Create ${article(one)}`;
    case 'PUT':
    case 'PATCH':
      return `Change ${isOne ? article(one) : plural}`;
    case 'DELETE':
      return `Delete ${isOne ? article(one) : plural}`;
    default:
      return `${method} ${plural}`;
  }
}

function singular(words: string): string {
  if (words.endsWith('people')) return words.replace(/people$/, 'person');
  if (words.endsWith('sses')) return words.slice(0, -2);
  if (words.endsWith('ies')) return `${words.slice(0, -3)}y`;
  return words.endsWith('s') && !words.endsWith('ss') ? words.slice(0, -1) : words;
}

function article(words: string): string {
  return `${/^[aeio]/i.test(words) ? 'an' : 'a'} ${words}`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
