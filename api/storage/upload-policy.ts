/**
 * The grant of an upload to the API's own route, as form fields: like a POST policy of S3, signed with our secret. Its
 * owner may upload one file under one key, of one type and up to one size, until it expires. Pure.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Millis } from '#shared/clock.ts';
import type { NewObject } from './storage.ts';

/** Separates these signatures from all others with the same secret. */
const PURPOSE = 'floodgate.upload.v1:';
const STATUS = '201';

interface Policy extends NewObject {
  readonly expiresAt: Millis;
}

type Admission =
  | { readonly kind: 'granted'; readonly object: NewObject }
  /** Callers see `reason`. */
  | { readonly kind: 'refused'; readonly reason: string };

export function grantFields(
  object: NewObject,
  expiresAt: Millis,
  signer: Signer,
): Readonly<Record<string, string>> {
  const { key, contentType, bytesMax } = object;
  const policy = Buffer.from(JSON.stringify({ expiresAt, key, contentType, bytesMax })).toString('base64');
  return {
    key,
    'Content-Type': contentType,
    success_action_status: STATUS,
    Policy: policy,
    Signature: signer.sign(PURPOSE + policy),
  };
}

/** Whether these fields are a valid grant of ours. */
export function admit(fields: ReadonlyMap<string, string>, now: Millis, signer: Signer): Admission {
  const policy = fields.get('Policy') ?? '';
  if (!signer.verify(PURPOSE + policy, fields.get('Signature') ?? '')) {
    return refused('The fields do not carry a valid signature; send every presigned field, unchanged');
  }
  // We have signed it, so it has the shape that we sign.
  const { expiresAt, ...object }: Policy = JSON.parse(Buffer.from(policy, 'base64').toString());
  if (now >= expiresAt) return refused('Invalid according to Policy: Policy expired. Ask for a new grant');
  const expected = { key: object.key, 'Content-Type': object.contentType, success_action_status: STATUS };
  for (const [name, value] of Object.entries(expected)) {
    if (fields.get(name) !== value) {
      return refused(`Invalid according to Policy: Policy Condition failed: ["eq", "$${name}", "${value}"]`);
    }
  }
  return { kind: 'granted', object };
}

function refused(reason: string): Admission {
  return { kind: 'refused', reason };
}
