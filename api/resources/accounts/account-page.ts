/** The account page: the user, the workspaces and the API keys that the user may see. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { notAuthenticated } from '#api/errors.ts';
import { sendPage } from '#api/http/page.ts';
import { field, form, hidden, links } from '#api/http/page-form.ts';
import { type ApiKey, listApiKeys } from '#api/resources/api-keys/store.ts';
import { type OwnOrganization, organizationsOf } from '#api/resources/organizations/store.ts';
import { listWorkspaces, type Workspace } from '#api/resources/workspaces/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { protect } from './form.ts';
import { findUser } from './store.ts';

const WORKSPACES_SHOWN_MAX = 500;

export const ACCOUNT_PATH = '/account';

interface Message {
  readonly status: number;
  /** HTML above everything else. */
  readonly message: string;
  /** The person typed this as the name of a new key, and it has this mistake. */
  readonly label: string;
  readonly error: string | undefined;
}

/** @throws ApiError not_authenticated if the user was deleted */
export async function sendAccount(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { userId, organizationIds, permissions }: SessionPrincipal,
  { status = 200, message = '', label = '', error }: Partial<Message> = {},
): Promise<FastifyReply> {
  const { db } = context;
  const { basePath } = reply.server;
  const user = await findUser(db, userId);
  if (user === null) throw notAuthenticated();
  const page = { limit: WORKSPACES_SHOWN_MAX, skip: 0 };
  const workspaces = toldApart(await listWorkspaces(db, [...permissions.keys()], page));
  const all = await organizationsOf(db, userId);
  const organizations = toldApart(all.filter(({ id }) => organizationIds.includes(id)));
  const keys = await listApiKeys(db, organizationIds);
  const protection = protect(context, request, reply);
  const path = `${basePath}${ACCOUNT_PATH}`;
  const parts = [
    message,
    `<div class="row"><p>You are logged in as <strong>${escapeHtml(user.name)}</strong>, ${escapeHtml(user.email)}.</p>`,
    form(
      `${basePath}/api/auth/signout`,
      [protection, hidden('callbackUrl', '/auth/login?notice=signed-out')],
      'Log out',
      'plain',
    ),
    '</div>',
    links([[`${basePath}/auth/forgot-password`, 'Choose a new password']]),
    '<p>The operator of this server adds people with <code>npm run people -- add EMAIL</code>, and deletes accounts with <code>npm run people -- remove EMAIL</code>.</p>',
    '<h2>Workspaces</h2>',
    workspaces.length === 0
      ? noWorkspace(organizations)
      : list(workspaces.map((one) => workspaceItem(one, permissions))),
    '<h2>API keys</h2>',
    ...(organizations.length === 0
      ? ['<p>Owners and managers of an organization make its API keys.</p>']
      : [
          keys.length === 0
            ? '<p>There is no key yet.</p>'
            : list(keys.map((key) => keyItem(key, workspaces, protection, path))),
          '<h3>New key</h3>',
          form(
            `${path}/api-keys`,
            [
              protection,
              field({
                name: 'label',
                label: 'Name of the key',
                type: 'text',
                autocomplete: 'off',
                hint: 'The program that will use it, such as “n8n”',
                value: label,
                error,
              }),
              `<div class="columns">${reachField(organizations, workspaces)}${permissionField()}</div>`,
            ],
            'Make the key',
          ),
        ]),
  ];
  return sendPage(reply, status, 'Your account', parts, { isWide: true });
}

/** Adds the id to each name that several have, because forms and lists show names only. */
function toldApart<Row extends { readonly id: string; readonly name: string }>(rows: readonly Row[]): Row[] {
  const byName = Map.groupBy(rows, ({ name }) => name);
  return rows
    .map((row) => (byName.get(row.name)?.length === 1 ? row : { ...row, name: `${row.name} (${row.id})` }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

const rights: Readonly<Record<Permission, string>> = {
  manage: 'read, write and delete',
  write: 'read and write',
  read: 'read',
};

function workspaceItem({ name, id }: Workspace, permissions: SessionPrincipal['permissions']): string {
  return [
    `<strong>${escapeHtml(name)}</strong> <span class="hint">${rights[permissions.get(id) ?? 'read']}</span><br>`,
    `id <code>${escapeHtml(id)}</code>`,
  ].join('');
}

function keyItem(
  key: ApiKey,
  workspaces: readonly Workspace[],
  protection: string,
  accountPath: string,
): string {
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  const reach = key.workspacePermissions.map(
    ({ workspaceId, permission }) =>
      `${escapeHtml(names.get(workspaceId) ?? workspaceId)} (${rights[permission]})`,
  );
  const label = escapeHtml(key.label);
  const use = key.lastUsedAt === null ? 'never used' : `last used ${day(key.lastUsedAt)}`;
  return `<strong>${label}</strong><br>
<span class="hint">made ${day(key.createdAt)}, ${use}; ${reach.join(', ') || 'reaches no workspace'}</span>
<details><summary>Revoke<span class="hidden-text"> ${label}</span></summary>
<p>Programs that use this key stop working at once. This cannot be undone.</p>
${form(`${accountPath}/api-keys/${key.id}/revoke`, [protection], `Revoke ${key.label}`, 'danger')}</details>`;
}

function noWorkspace([first]: readonly OwnOrganization[]): string {
  if (first === undefined)
    return '<p>You reach no workspace. The operator of this server can let you into one.</p>';
  const path = `/api/v1/organizations/${escapeHtml(first.id)}/workspaces`;
  return `<p>There is no workspace. A program makes one with your session: <code>POST ${path}</code>.</p>`;
}

/** A value is the id of an organization, for all of its workspaces, or that with the id of one. */
function reachField(organizations: readonly OwnOrganization[], workspaces: readonly Workspace[]): string {
  const options = organizations.flatMap(({ id, name }) => [
    option(id, `All workspaces of ${name}`),
    ...workspaces
      .filter(({ organizationId }) => organizationId === id)
      .map((workspace) => option(`${id}:${workspace.id}`, `Only ${workspace.name}`)),
  ]);
  return select('reach', 'Reaches', options);
}

function permissionField(): string {
  return select(
    'permission',
    'May',
    Object.entries(rights).map(([permission, text]) => option(permission, text)),
  );
}

function select(name: string, label: string, options: readonly string[]): string {
  return `<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${options.join('')}</select></div>`;
}

function option(value: string, text: string): string {
  return `<option value="${escapeHtml(value)}">${escapeHtml(text)}</option>`;
}

function list(items: readonly string[]): string {
  return `<ul class="plain">${items.map((item) => `<li>${item}</li>`).join('')}</ul>`;
}

function day(timestamp: string): string {
  const date = timestamp.slice(0, 10);
  return `<time datetime="${date}">${date}</time>`;
}
