/** A private certificate authority of the test's own, made by openssl. */
import { execFileSync } from 'node:child_process';
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
  /** @param names subject alternative names, such as 'IP:127.0.0.1,DNS:localhost' */
  issue(name: string, names: string): Identity;
}

export function createAuthority(owner: Owner): Authority {
  const folder = temporaryFolder(owner);
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-subj',
    '/CN=Test CA',
    '-days',
    '2',
  );
  return {
    ca: join(folder, 'ca.crt'),
    issue(name, names) {
      const [cert, key] = [`${name}.crt`, `${name}.key`];
      openssl('req', ...newKey, '-keyout', key, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
      writeFileSync(join(folder, `${name}.ext`), `subjectAltName=${names}\n`);
      const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
      openssl('x509', '-req', '-in', `${name}.csr`, ...signed, '-extfile', `${name}.ext`, '-out', cert);
      return { cert: join(folder, cert), key: join(folder, key) };
    },
  };
}
