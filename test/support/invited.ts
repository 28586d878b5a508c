/** Creates people of the first organization through its routes. The caller is the owner, logged in. */
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
  const [first] = await asOwner(world, 'GET', '/api/v1/organizations');
  return first.id;
}

/** @returns the token of the link of a new invite */
export async function inviteToken(world: World, email: string): Promise<string> {
  const organization = await organizationId({}, world);
  const { link } = await asOwner(world, 'POST', `/api/v1/organizations/${organization}/invites`, { email });
  return new URL(link).searchParams.get('token') ?? '';
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

/**
 * Creates somebody who has accepted an invite, and who belongs to the team if one is given.
 *
 * @returns the id of the user
 */
export async function member({ organizationId, teamId }: Ids, world: World): Promise<string> {
  const { send } = world.options;
  const token = await inviteToken(world, `${world.unique()}@example.com`);
  const form = await protectedForm(world, { token, name: 'Walker', password: 'Password1', json: 'true' });
  const accepted = await send({ method: 'POST', url: '/api/auth/accept-invite', ...form });
  const headers = { cookie: cookiesOf(accepted) };
  const session = await send({ method: 'GET', url: '/api/auth/session', headers });
  const { id } = JSON.parse(session.text).user;
  const url = `/api/v1/organizations/${organizationId}/teams/${teamId}/members/${id}`;
  if (teamId !== undefined) await asOwner(world, 'PUT', url, { role: 'contributor' });
  return id;
}

/** Returns the workspace, which the team can reach if one is given. */
export async function workspace({ organizationId, teamId }: Ids, world: World): Promise<string> {
  const { workspaceId } = world.options;
  const url = `/api/v1/organizations/${organizationId}/teams/${teamId}/workspaces/${workspaceId}`;
  if (teamId !== undefined) await asOwner(world, 'PUT', url, { permission: 'read' });
  return workspaceId;
}
