/** The account page: the user, the workspaces and the API keys that the user may see. */
import type { FastifyReply } from 'fastify';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { notAuthenticated } from '#api/errors.ts';
import { links, sendPage } from '#api/http/page.ts';
import { type ApiKey, listApiKeys } from '#api/resources/api-keys/store.ts';
import { type OwnOrganization, organizationsOf } from '#api/resources/organizations/store.ts';
import { listWorkspaces, type Workspace } from '#api/resources/workspaces/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { type Form, formsOf, type Shown } from './form.ts';
import { findUser } from './store.ts';

export const ACCOUNT_PATH = '/account';
export const KEYS_PATH = `${ACCOUNT_PATH}/api-keys`;
export const EMAIL_PATH = `${ACCOUNT_PATH}/email`;

const logOutForm: Form = {
  action: '/api/auth/signout',
  fields: [],
  submit: 'Log out',
  look: 'plain',
};

const emailForm: Form = {
  action: EMAIL_PATH,
  fields: [
    { name: 'email', label: 'New e-mail address', type: 'email', autocomplete: 'email' },
    { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' },
  ],
  submit: 'Send a link to this address',
  look: 'plain',
};

const rights: Readonly<Record<Permission, string>> = {
  manage: 'read, write and delete',
  write: 'read and write',
  read: 'read',
};

/** @throws ApiError not_authenticated if the user was deleted */
export async function sendAccount(
  context: Context,
  reply: FastifyReply,
  { userId, organizationIds, permissions }: SessionPrincipal,
  { status = 200, message = '', given, errors = {} }: Partial<Shown>,
): Promise<FastifyReply> {
  const { db } = context;
  const user = await findUser(db, userId);
  if (user === null) throw notAuthenticated();
  const workspaces = toldApart(await listWorkspaces(db, permissions.keys()));
  const all = await organizationsOf(db, userId);
  const organizations = toldApart(all.filter(({ id }) => organizationIds.includes(id)));
  const keys = await listApiKeys(db, organizationIds);
  const draw = formsOf(context, reply, { given, errors });
  return sendPage(
    reply,
    status,
    'Your account',
    [
      message,
      `<div class="row"><p>You are logged in as <strong>${escapeHtml(user.name)}</strong>, ${escapeHtml(user.email)}.</p>`,
      draw(logOutForm),
      '</div>',
      links([[`${reply.server.basePath}/auth/forgot-password`, 'Choose a new password']]),
      '<h2>Workspaces</h2>',
      workspaces.length === 0
        ? '<p>You reach no workspace.</p>'
        : list(workspaces.map((one) => workspaceItem(one, permissions))),
      '<h2>API keys</h2>',
      ...(organizations.length === 0
        ? ['<p>Owners and managers of an organization make its API keys.</p>']
        : [
            keys.length === 0
              ? '<p>There is no key yet.</p>'
              : list(keys.map((key) => keyItem(key, workspaces, draw))),
            '<h3>New key</h3>',
            draw(newKeyForm(organizations, workspaces)),
          ]),
      '<h2>E-mail address</h2>',
      draw(emailForm),
      '<h2>People</h2>',
      '<p>The operator of this server adds people with <code>npm run people -- add EMAIL</code>, and deletes accounts with <code>npm run people -- remove EMAIL</code>.</p>',
    ],
    { isWide: true },
  );
}

/** Adds the id to each name that several have, because forms and lists show names only. */
function toldApart<Row extends { readonly id: string; readonly name: string }>(rows: readonly Row[]): Row[] {
  const byName = Map.groupBy(rows, ({ name }) => name);
  return rows
    .map((row) => (byName.get(row.name)?.length === 1 ? row : { ...row, name: `${row.name} (${row.id})` }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

function workspaceItem({ name, id }: Workspace, permissions: SessionPrincipal['permissions']): string {
  return [
    `<strong>${escapeHtml(name)}</strong> <span class="hint">${rights[permissions.get(id) ?? 'read']}</span><br>`,
    `id <code>${escapeHtml(id)}</code>`,
  ].join('');
}

function keyItem(key: ApiKey, workspaces: readonly Workspace[], draw: (form: Form) => string): string {
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  const listed = key.workspacePermissions.map(
    ({ workspaceId, permission }) =>
      `${escapeHtml(names.get(workspaceId) ?? workspaceId)} (${rights[permission]})`,
  );
  const reach = key.allWorkspaces === null ? listed : [`all workspaces (${rights[key.allWorkspaces]})`];
  const label = escapeHtml(key.label);
  const use = key.lastUsedAt === null ? 'never used' : `last used ${day(key.lastUsedAt)}`;
  const revocation: Form = {
    action: `${KEYS_PATH}/${key.id}/revoke`,
    fields: [],
    submit: `Revoke ${key.label}`,
    look: 'danger',
  };
  return `<strong>${label}</strong><br>
<span class="hint">made ${day(key.createdAt)}, ${use}; ${reach.join(', ') || 'reaches no workspace'}</span>
<details><summary>Revoke<span class="hidden-text"> ${label}</span></summary>
<p>Programs that use this key stop working at once. This cannot be undone.</p>
${draw(revocation)}</details>`;
}

/** A value of `reach` is the id of an organization, for all of its workspaces, or that with the id of one. */
function newKeyForm(organizations: readonly OwnOrganization[], workspaces: readonly Workspace[]): Form {
  const reach = organizations.flatMap(({ id, name }) => [
    [id, `All workspaces of ${name}`] as const,
    ...workspaces
      .filter(({ organizationId }) => organizationId === id)
      .map((workspace) => [`${id}:${workspace.id}`, `Only ${workspace.name}`] as const),
  ]);
  const hint = 'The program that will use it, such as “n8n”';
  return {
    action: KEYS_PATH,
    fields: [
      { name: 'label', label: 'Name of the key', type: 'text', autocomplete: 'off', hint },
      { name: 'reach', label: 'Reaches', type: 'select', options: reach },
      { name: 'permission', label: 'May', type: 'select', options: Object.entries(rights) },
    ],
    submit: 'Make the key',
  };
}

function list(items: readonly string[]): string {
  return `<ul class="plain">${items.map((item) => `<li>${item}</li>`).join('')}</ul>`;
}

function day(timestamp: string): string {
  const date = timestamp.slice(0, 10);
  return `<time datetime="${date}">${date}</time>`;
}
