/** The account page: the user, the workspaces and the API keys that the user may see. */
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { field, form, hidden, links } from '#api/http/page-form.ts';
import { type ApiKey, listApiKeys } from '#api/resources/api-keys/store.ts';
import { type OwnOrganization, organizationsOf } from '#api/resources/organizations/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { ACCOUNT_DELETION_PATH, workspaceDeletionPath } from './form.ts';
import { findUser, type User } from './store.ts';

const WORKSPACES_SHOWN_MAX = 500;

interface Workspace {
  readonly id: string;
  readonly name: string;
  readonly organizationId: string;
  readonly legacyEnvironmentId: string | null;
  readonly permission: Permission;
}

export interface AccountView {
  readonly user: Pick<User, 'name' | 'email'>;
  /** Workspaces in the order of their names, at most 500. */
  readonly workspaces: readonly Workspace[];
  /** The organizations that the user runs, and whose keys the user may create and revoke. */
  readonly organizations: readonly OwnOrganization[];
  readonly keys: readonly ApiKey[];
}

/** @returns null if the user was deleted */
export async function readAccount(
  { db }: Pick<Context, 'db'>,
  { userId, organizationIds, permissions }: SessionPrincipal,
): Promise<AccountView | null> {
  const user = await findUser(db, userId);
  if (user === null) return null;
  const ids = [...permissions.keys()].slice(0, WORKSPACES_SHOWN_MAX);
  const [rows, organizations, keys] = await Promise.all([
    ids.length === 0
      ? []
      : db
          .selectFrom('workspaces')
          .select(['id', 'name', 'organizationId', 'legacyEnvironmentId'])
          .where('id', 'in', ids)
          .orderBy('name')
          .orderBy('id')
          .execute(),
    organizationsOf(db, userId),
    listApiKeys(db, organizationIds),
  ]);
  const workspaces = toldApart(rows).map((row) => ({
    ...row,
    permission: permissions.get(row.id) ?? ('read' as const),
  }));
  const run = organizations.filter(({ id }) => organizationIds.includes(id));
  return { user, workspaces, organizations: toldApart(run), keys };
}

/** Adds the id to each name that several have, because forms and lists show names only. */
function toldApart<Row extends { readonly id: string; readonly name: string }>(rows: readonly Row[]): Row[] {
  const byName = Map.groupBy(rows, ({ name }) => name);
  return rows.map((row) =>
    byName.get(row.name)?.length === 1 ? row : { ...row, name: `${row.name} (${row.id})` },
  );
}

interface AccountFormState {
  readonly label: string;
  readonly error: string | undefined;
}

/** @param protection the hidden field of every form */
export function accountParts(
  { user, workspaces, organizations, keys }: AccountView,
  protection: string,
  basePath: string,
  { label, error }: AccountFormState,
): readonly string[] {
  return [
    `<div class="row"><p>You are logged in as <strong>${escapeHtml(user.name)}</strong>, ${escapeHtml(user.email)}.</p>`,
    form(
      `${basePath}/api/auth/signout`,
      [protection, hidden('callbackUrl', '/auth/login?notice=signed-out')],
      'Log out',
      'plain',
    ),
    '</div>',
    links([
      [`${basePath}/auth/forgot-password`, 'Choose a new password'],
      [`${basePath}${ACCOUNT_DELETION_PATH}`, 'Delete your account'],
    ]),
    '<h2>Workspaces</h2>',
    workspaces.length === 0
      ? noWorkspace(organizations)
      : `<ul class="plain">${workspaces.map((one) => workspaceItem(one, organizations, basePath)).join('')}</ul>`,
    '<h2>API keys</h2>',
    ...(organizations.length === 0
      ? ['<p>Owners and managers of an organization make its API keys.</p>']
      : [
          keys.length === 0
            ? '<p>There is no key yet.</p>'
            : `<ul class="plain">${keys.map((key) => keyItem(key, workspaces, protection, basePath)).join('')}</ul>`,
          '<h3 id="new-key">New key</h3>',
          form(
            `${basePath}/account/api-keys#new-key`,
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
}

function noWorkspace([first]: AccountView['organizations']): string {
  if (first === undefined)
    return '<p>You reach no workspace. The operator of this server can let you into one.</p>';
  const path = `/api/v1/organizations/${escapeHtml(first.id)}/workspaces`;
  return `<p>There is no workspace. A program makes one with your session: <code>POST ${path}</code>.</p>`;
}

function workspaceItem(
  { name, id, organizationId, legacyEnvironmentId, permission }: Workspace,
  organizations: AccountView['organizations'],
  basePath: string,
): string {
  const isOwned = organizations.some((one) => one.id === organizationId && one.role === 'owner');
  return `<li><strong>${escapeHtml(name)}</strong> <span class="hint">${rights[permission]}</span><br>
id <code>${escapeHtml(id)}</code>${
    legacyEnvironmentId === null
      ? ''
      : `, for older clients also <code>${escapeHtml(legacyEnvironmentId)}</code>`
  }${isOwned ? `<br>\n<a href="${basePath}${workspaceDeletionPath(id)}">Delete ${escapeHtml(name)}</a>` : ''}</li>`;
}

const rights: Readonly<Record<Permission, string>> = {
  read: 'read',
  write: 'read and write',
  manage: 'read, write and delete',
};

function keyItem(
  key: ApiKey,
  workspaces: readonly Workspace[],
  protection: string,
  basePath: string,
): string {
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  const reach = key.workspacePermissions.map(
    ({ workspaceId, permission }) =>
      `${escapeHtml(names.get(workspaceId) ?? workspaceId)} (${rights[permission]})`,
  );
  const label = escapeHtml(key.label);
  return `<li><strong>${label}</strong><br>
<span class="hint">made ${day(key.createdAt)}, ${key.lastUsedAt === null ? 'never used' : `last used ${day(key.lastUsedAt)}`}; ${
    reach.length === 0 ? 'reaches no workspace' : reach.join(', ')
  }</span>
<details><summary>Revoke<span class="hidden-text"> ${label}</span></summary>
<p>Programs that use this key stop working at once. This cannot be undone.</p>
${form(`${basePath}/account/api-keys/${key.id}/revoke`, [protection], `Revoke ${key.label}`, 'danger')}</details></li>`;
}

function reachField(organizations: AccountView['organizations'], workspaces: readonly Workspace[]): string {
  const options = organizations.flatMap(({ id, name }) => [
    option(`organization:${id}`, `All workspaces of ${name}`),
    ...workspaces
      .filter(({ organizationId }) => organizationId === id)
      .map((workspace) => option(`workspace:${workspace.id}`, `Only ${workspace.name}`)),
  ]);
  return `<div class="field"><label for="reach">Reaches</label><select id="reach" name="reach">${options.join('')}</select></div>`;
}

function permissionField(): string {
  const options = (['manage', 'write', 'read'] as const).map((permission) =>
    option(permission, rights[permission]),
  );
  return `<div class="field"><label for="permission">May</label><select id="permission" name="permission">${options.join('')}</select></div>`;
}

function option(value: string, text: string): string {
  return `<option value="${escapeHtml(value)}">${escapeHtml(text)}</option>`;
}

function day(timestamp: string): string {
  const date = timestamp.slice(0, 10);
  return `<time datetime="${date}">${date}</time>`;
}
