/**
 * The grant of an upload to the API's own route, as form fields: like a POST policy of S3, signed with our secret. What the
 * policy says counts; the other fields are there for clients that expect those of S3. Pure.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Millis } from '#shared/clock.ts';
import type { NewObject, UploadForm } from './storage.ts';

/** Separates these signatures from all others with the same secret. */
const PURPOSE = 'floodgate.upload.v1:';

interface Policy extends NewObject {
  readonly expiresAt: Millis;
}

export function grantFields(policy: Policy, signer: Signer): UploadForm['fields'] {
  const encoded = Buffer.from(JSON.stringify(policy)).toString('base64');
  return {
    key: policy.key,
    'Content-Type': policy.contentType,
    success_action_status: '201',
    Policy: encoded,
    Signature: signer.sign(PURPOSE + encoded),
  };
}

/** @returns what the fields of a form grant; null if they are not ours, were changed, or are too old */
export function grantedBy(
  fields: ReadonlyMap<string, string>,
  now: Millis,
  signer: Signer,
): NewObject | null {
  const encoded = fields.get('Policy') ?? '';
  if (!signer.verify(PURPOSE + encoded, fields.get('Signature') ?? '')) return null;
  // We have signed it, so it has the shape that we sign.
  const { expiresAt, ...object }: Policy = JSON.parse(Buffer.from(encoded, 'base64').toString());
  return now < expiresAt ? object : null;
}
