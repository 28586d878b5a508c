/** Provides what requests need beyond the schemas of the description: rows that no operation creates, files, codes. */
import { organizationId } from './owner.ts';
import type { BodyOf, IdOf, World } from './world.ts';

const actionClass: BodyOf = ({ workspaceId }, world) => {
  const name = world.unique();
  return { workspaceId: workspaceId ?? world.options.workspaceId, name, type: 'code', key: name };
};

export const bodies: Readonly<Record<string, BodyOf>> = {
  'POST /api/v1/management/action-classes': actionClass,
  'PUT /api/v1/management/action-classes/{actionClassId}': actionClass,
  'POST /api/v1/management/languages': (_ids, world) => ({
    workspaceId: world.options.workspaceId,
    code: `de-${world.unique()}`,
  }),
  'POST /api/v1/client/{workspaceId}/surveys/{surveyId}/pin': () => ({ pin: '1234' }),
  'POST /api/v2/client/{workspaceId}/surveys/{surveyId}/pin': () => ({ pin: '1234' }),
  'POST /api/v2/management/contacts': (_ids, world) => ({
    workspaceId: world.options.workspaceId,
    attributes: { email: `${world.unique()}@example.com` },
  }),
};

/** Returns the id of the contact with this user name. */
async function contactOf(userId: string, { options }: World): Promise<string> {
  const reply = await options.send({
    method: 'POST',
    url: `/api/v1/client/${options.workspaceId}/user`,
    body: JSON.stringify({ userId }),
  });
  return JSON.parse(reply.text).data.state.data.contactId;
}

const contactId: IdOf = (_known, world) => contactOf(world.unique(), world);

export const ids: Readonly<Record<string, IdOf>> = {
  organizationId,
  workspaceId: async (_known, world) => world.options.workspaceId,
  async userId(_known, world) {
    const userId = world.unique();
    await contactOf(userId, world);
    return userId;
  },
  contactId,
  personId: contactId,
  script: async () => 'formbricks.umd.cjs',
  source: async () => 'user',
  accessType: async () => 'public',
  async fileName(_known, world) {
    const { fileUrl } = await uploadFile(world, 'walk');
    return decodeURIComponent(fileUrl.split('/').at(-1) ?? '');
  },
};

export interface UploadForm {
  /** Path of the upload. */
  readonly url: string;
  readonly fileUrl: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Builds the form of an upload that was granted. @param change replaces fields of the grant */
export async function uploadForm(
  { options, unique }: World,
  content: string,
  change: Readonly<Record<string, string>> = {},
): Promise<UploadForm> {
  const { workspaceId, apiKey, send } = options;
  const reply = await send({
    method: 'POST',
    url: '/api/v1/management/storage',
    headers: { 'x-api-key': apiKey },
    body: JSON.stringify({ workspaceId, fileName: `${unique()}.txt`, fileType: 'text/plain' }),
  });
  const { fileUrl, presignedFields, signedUrl } = JSON.parse(reply.text).data;
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...presignedFields, ...change })) {
    form.append(name, String(value));
  }
  form.append('file', new Blob([content]), 'walk.txt');
  const encoded = new Response(form);
  return {
    url: new URL(signedUrl).pathname,
    fileUrl,
    body: Buffer.from(await encoded.arrayBuffer()),
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
  };
}

export async function uploadFile(world: World, content: string): Promise<UploadForm> {
  const form = await uploadForm(world, content);
  const reply = await world.options.send({ method: 'POST', ...form });
  if (reply.status !== 201) throw new Error(`The upload was answered ${reply.status}: ${reply.text}`);
  return form;
}
