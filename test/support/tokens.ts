/** Makes signed tokens and key sets with jose. */
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

export interface Signer {
  readonly algorithm: string;
  readonly id: string;
  readonly privateKey: CryptoKey;
  /** The key in the format of a key set. */
  readonly jwk: object;
}

export async function newSigner(algorithm: string, id: string): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { algorithm, id, privateKey, jwk: { ...(await exportJWK(publicKey)), kid: id, alg: algorithm } };
}

export function keySetText(...signers: readonly Signer[]): string {
  return `${JSON.stringify({ keys: signers.map(({ jwk }) => jwk) })}\n`;
}

/** @param header further fields of its protected header, `kid: undefined` for none */
export function sign(
  { algorithm, id, privateKey }: Signer,
  payload: JWTPayload,
  header: object = {},
): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: algorithm, kid: id, ...header }).sign(privateKey);
}
