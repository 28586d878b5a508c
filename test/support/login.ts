/** A caller that keeps cookies, as browsers do, and logs in to an API in this process. */
import type { InjectOptions } from 'fastify';
import type { Reply, TestApi } from './api-app.ts';

export interface Browser {
  /** Cookies by name. */
  readonly cookies: Map<string, string>;
  /** A body that is not text is sent as JSON. */
  call(
    method: NonNullable<InjectOptions['method']>,
    url: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Reply>;
  /** Sends a form with the CSRF token that belongs to it. */
  form(url: string, fields: Readonly<Record<string, string>>): Promise<Reply>;
  logIn(email: string, password: string): Promise<Reply>;
}

export function openBrowser(api: TestApi): Browser {
  const cookies = new Map<string, string>();
  const call: Browser['call'] = async (method, url, body, headers = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await api.client(method, url, body, { ...(cookie === '' ? {} : { cookie }), ...headers });
    const set = reply.headers['set-cookie'];
    for (const line of Array.isArray(set) ? set : set === undefined ? [] : [set]) {
      const [pair = '', ...attributes] = String(line).split('; ');
      const name = pair.slice(0, pair.indexOf('='));
      if (attributes.includes('Max-Age=0')) cookies.delete(name);
      else cookies.set(name, pair.slice(pair.indexOf('=') + 1));
    }
    return reply;
  };
  const form: Browser['form'] = async (url, fields) => {
    const { csrfToken } = (await call('GET', '/api/auth/csrf')).json;
    return call('POST', url, new URLSearchParams({ csrfToken, json: 'true', ...fields }).toString());
  };
  return {
    cookies,
    call,
    form,
    logIn: (email, password) => form('/api/auth/callback/credentials', { email, password }),
  };
}

/** Signs somebody up, who then has a mail. */
export async function signUp(
  api: TestApi,
  account: { readonly name: string; readonly email: string; readonly password: string },
): Promise<void> {
  const reply = await openBrowser(api).form('/auth/signup', account);
  if (reply.status !== 303) throw new Error(`No sign-up: ${reply.text}`);
}

/** The owner of the first organization, logged in. */
export async function logInOwner(api: TestApi): Promise<Browser> {
  const browser = openBrowser(api);
  const reply = await browser.logIn('owner@example.com', 'Password1');
  if (reply.status !== 200 || reply.json.url.includes('error=')) throw new Error(`No login: ${reply.text}`);
  return browser;
}
