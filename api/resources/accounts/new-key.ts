/** Reads the form for a new API key. */
import type { Permission } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { invalidFields, unauthorized } from '#api/errors.ts';
import type { NewApiKey } from '#api/resources/api-keys/create.ts';
import { fieldOf } from './form.ts';

const LABEL_LENGTH_MAX = 255;
const permissions: ReadonlySet<string> = new Set<Permission>(['read', 'write', 'manage']);

/**
 * @param reach `organization:ID` for all of its workspaces, or `workspace:ID`
 * @param managed the organizations for which the user may create keys
 * @throws ApiError invalid_fields; unauthorized if the user may not give this access
 */
export async function newKeyFrom(
  db: Database,
  body: unknown,
  managed: readonly string[],
): Promise<NewApiKey> {
  const label = fieldOf(body, 'label');
  if (label.length > LABEL_LENGTH_MAX)
    throw invalidFields({ label: `must have at most ${LABEL_LENGTH_MAX} characters` });
  const permission = permissionIn(fieldOf(body, 'permission'));
  const [kind, id = ''] = fieldOf(body, 'reach').split(':');
  const found = await db
    .selectFrom('workspaces')
    .select(['id', 'organizationId'])
    .where(kind === 'organization' ? 'organizationId' : 'id', '=', id)
    .where('organizationId', 'in', managed)
    .where('deletingAt', 'is', null)
    .orderBy('id')
    .execute();
  const [first] = found;
  if (first === undefined) throw unauthorized();
  return {
    organizationId: first.organizationId,
    label,
    organizationAccess: undefined,
    reach:
      kind === 'organization'
        ? { allWorkspaces: permission }
        : { workspacePermissions: found.map((workspace) => ({ workspaceId: workspace.id, permission })) },
  };
}

function permissionIn(text: string): Permission {
  if (!permissions.has(text)) throw invalidFields({ permission: 'must be read, write or manage' });
  return text as Permission;
}
