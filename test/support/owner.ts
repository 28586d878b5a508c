/** Calls routes as the owner of the first organization, who is logged in. */
import { cookiesOf, type Ids, type World } from './world.ts';

/** @returns `data` of the reply */
export async function asOwner(
  { options }: World,
  method: string,
  url: string,
  body?: unknown,
): Promise<ReturnType<typeof JSON.parse>> {
  const reply = await options.send({
    method,
    url,
    headers: { cookie: options.session },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (reply.status !== 200) throw new Error(`${method} ${url} was answered ${reply.status}: ${reply.text}`);
  return JSON.parse(reply.text).data;
}

export async function organizationId(_known: Ids, world: World): Promise<string> {
  const [first] = await asOwner(world, 'GET', '/api/v1/management/workspaces');
  return first.organizationId;
}

/** Builds a form with the token that protects it. @param cookie of who sends it */
export async function protectedForm(
  { options }: World,
  fields: Readonly<Record<string, string>>,
  cookie = '',
): Promise<{ readonly headers: Record<string, string>; readonly body: string }> {
  const asked = await options.send({ method: 'GET', url: '/api/auth/csrf' });
  const { csrfToken } = JSON.parse(asked.text);
  return {
    headers: { cookie: [cookiesOf(asked), cookie].filter((one) => one !== '').join('; ') },
    body: new URLSearchParams({ csrfToken, ...fields }).toString(),
  };
}
