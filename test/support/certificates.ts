/** A private certificate authority of the test's own: X.509 certificates (RFC 5280) for P-256 keys. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from './gateway.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** Names of PEM files. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  readonly ca: string;
  /**
   * @param names subject alternative names, such as 'IP:127.0.0.1,DNS:localhost'
   * @param daysLeft negative for a certificate that has expired; default: 2
   */
  issue(name: string, names: string, daysLeft?: number): Identity;
}

const CA_NAME = 'Test CA';
const DAY_MS = 86_400_000;
const TRUE = der(0x01, Buffer.from([255]));
const ECDSA_SHA256 = sequence(objectId('2a8648ce3d040302'));

export function createAuthority(owner: Owner): Authority {
  const folder = temporaryFolder(owner);
  const signer = newKeys();
  /** All authorities have one name, so this identifies the key that has signed. */
  const keyId = randomBytes(8);
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const isAuthority = [
    extension('551d13', sequence(TRUE), true),
    // Signs certificates.
    extension('551d0f', der(0x03, Buffer.from([2, 4])), true),
    extension('551d0e', der(0x04, keyId)),
  ];
  return {
    ca: write('ca.crt', certificate(CA_NAME, signer.publicKey, signer.privateKey, isAuthority)),
    issue(name, names, daysLeft) {
      const keys = newKeys();
      const extensions = [
        extension('551d11', sequence(...names.split(',').map(alternativeName))),
        extension('551d23', sequence(der(0x80, keyId))),
      ];
      return {
        cert: write(
          `${name}.crt`,
          certificate(name, keys.publicKey, signer.privateKey, extensions, daysLeft),
        ),
        key: write(`${name}.key`, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
      };
    },
  };
}

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** Valid from the day before yesterday. @returns PEM */
function certificate(
  name: string,
  key: KeyObject,
  signer: KeyObject,
  extensions: Buffer[],
  daysLeft = 2,
): string {
  const now = Date.now();
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    // A serial number is positive and has the full length.
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    distinguishedName(CA_NAME),
    sequence(time(now - 2 * DAY_MS), time(now + daysLeft * DAY_MS)),
    distinguishedName(name),
    key.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ECDSA_SHA256, der(0x03, Buffer.from([0]), sign('sha256', body, signer)));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function alternativeName(text: string): Buffer {
  const [kind, value = ''] = text.split(/:(.*)/);
  return kind === 'IP' ? der(0x87, Buffer.from(value.split('.').map(Number))) : der(0x82, Buffer.from(value));
}

function extension(identifier: string, value: Buffer, isCritical = false): Buffer {
  return sequence(objectId(identifier), ...(isCritical ? [TRUE] : []), der(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(der(0x31, sequence(objectId('550403'), der(0x0c, Buffer.from(commonName)))));
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(text.slice(2)));
}

/** Encodes tag, length and value (ITU-T X.690). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

function integer(value: Uint8Array): Buffer {
  return der(0x02, value);
}

/** @param identifier in encoded form */
function objectId(identifier: string): Buffer {
  return der(0x06, Buffer.from(identifier, 'hex'));
}
