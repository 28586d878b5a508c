/**
 * Proves that a login form is ours: its token must equal the token in the cookie, which we have signed. The cookie is
 * `token|signature`. Another site can neither read nor create one.
 */
import type { Random } from '#api/values/ids.ts';
import { type Cookies, csrfCookie } from './cookies.ts';
import type { Signer } from './signer.ts';

const TOKEN_BYTES = 32;

/** Keeps the token of a valid cookie, or creates a new one. `cookie` is the value to set. */
export function csrfToken(
  cookies: Cookies,
  signer: Signer,
  random: Random,
): { readonly token: string; readonly cookie: string } {
  const token = tokenOfCookie(cookies, signer) ?? Buffer.from(random(TOKEN_BYTES)).toString('hex');
  return { token, cookie: `${token}|${signer.sign(textOf(token))}` };
}

export function isCsrfTokenValid(cookies: Cookies, given: string, signer: Signer): boolean {
  return given !== '' && tokenOfCookie(cookies, signer) === given;
}

function tokenOfCookie(cookies: Cookies, signer: Signer): string | null {
  const [token = '', signature = ''] = (csrfCookie(cookies) ?? '').split('|');
  return token !== '' && signer.verify(textOf(token), signature) ? token : null;
}

function textOf(token: string): string {
  return `floodgate.csrf.v1:${token}`;
}
