import { type CertificateReport, optionalPart, type Surroundings } from '#gateway/part/part.ts';
import type { Millis } from '#shared/clock.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import { DAY_MS, type KeyPairFiles, readKeyPair } from './key-pair.ts';

const VARIABLES = [
  {
    name: 'GATEWAY_TLS_CERT',
    meaning: 'PEM file of the certificate and its chain; the public listener then accepts HTTPS only',
  },
  { name: 'GATEWAY_TLS_KEY', meaning: 'PEM file of its private key, without a passphrase' },
  {
    name: 'GATEWAY_TLS_HANDSHAKES_PER_CLIENT',
    default: '50',
    meaning: 'TLS handshakes that one client may begin each second, and four times as many at once',
  },
] as const satisfies readonly Variable[];

export const tls = optionalPart({
  variables: VARIABLES,
  read(read, gathered) {
    const handshakesPerClient = read.integer('GATEWAY_TLS_HANDSHAKES_PER_CLIENT', 1, 1_000_000);
    const files = filesIn(read);
    if (files === null) return null;
    gathered.scheme = 'https';
    gathered.certificate = (now) => certificateReport(files, now);
    const pair = read.parse('GATEWAY_TLS_CERT', null, () => readKeyPair(files));
    if (pair === null) return null;
    return {
      async open(surroundings: Surroundings) {
        const { openCertificate } = await import('./certificate.ts');
        return openCertificate({ ...surroundings, files, pair, handshakesPerClient });
      },
    };
  },
});

function filesIn(read: SettingsReader<(typeof VARIABLES)[number]['name']>): KeyPairFiles | null {
  const cert = read.text('GATEWAY_TLS_CERT');
  const key = read.text('GATEWAY_TLS_KEY');
  if (cert !== '' && key !== '') return { cert, key };
  if (cert !== '') read.refuse('GATEWAY_TLS_KEY', 'it must be set together with GATEWAY_TLS_CERT');
  if (key !== '') read.refuse('GATEWAY_TLS_CERT', 'it must be set together with GATEWAY_TLS_KEY');
  return null;
}

function certificateReport(files: KeyPairFiles, now: Millis): CertificateReport {
  const file = files.cert;
  try {
    return { file, problem: null, daysLeft: Math.floor((readKeyPair(files).expiresAt - now) / DAY_MS) };
  } catch (error) {
    return { file, problem: (error as Error).message, daysLeft: null };
  }
}
