/** The certificate of the public listener. Reloads it when its files change, and reports when it expires. */
import type { OpenPart, Surroundings } from '#gateway/part/part.ts';
import { counter, gauge, type Sample } from '#gateway/part/sample.ts';
import { FileWatch } from '#gateway/policy/watched-file.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { readRegularFile } from '#shared/regular-file.ts';
import { Handshakes } from './handshakes.ts';
import { expiryWarning, type KeyPair, type KeyPairFiles, keyBeside, keyPairLoader } from './key-pair.ts';

interface CertificateOptions extends Pick<Surroundings, 'clock' | 'wallClock' | 'log'> {
  readonly files: KeyPairFiles;
  /** Contents of the files at the start. */
  readonly pair: KeyPair;
  /** Number of handshakes that one client may begin each second on average. */
  readonly handshakesPerClient: number;
}

export function openCertificate(options: CertificateOptions): OpenPart<{ readonly handshakes: Handshakes }> {
  const { files, pair, handshakesPerClient, clock, wallClock, log } = options;
  let reloads = 0;
  let reloadFailures = 0;
  const handshakes = new Handshakes(pair, {
    clock,
    perClient: handshakesPerClient,
    onTooFast: onceAMinute(clock, () =>
      log.warn(
        { limit: handshakesPerClient, setting: 'GATEWAY_TLS_HANDSHAKES_PER_CLIENT' },
        'a client address begins more TLS handshakes a second than it may; they wait',
      ),
    ),
  });
  const warn = (inUse: KeyPair): void => {
    const warning = expiryWarning(inUse, files.cert, wallClock);
    if (warning !== null) log.warn(warning);
  };
  const inUse = { loaded: pair, text: pair.cert, referenced: new Map([[keyBeside(files), pair.key]]) };
  const watch = new FileWatch(inUse, {
    file: files.cert,
    read: readRegularFile,
    load: keyPairLoader(files),
    clock,
    onLoaded: (loaded) => {
      reloads++;
      handshakes.use(loaded);
      log.info({ file: files.cert }, 'the new certificate is in use');
      warn(loaded);
    },
    onRefused: ({ message }) => {
      reloadFailures++;
      log.error({ reason: message }, 'the new certificate is refused; the old one stays in use');
    },
  });
  warn(pair);
  return {
    slots: { handshakes },
    start: () => watch.start(),
    reload: () => watch.reload(),
    close: () => watch.close(),
    samples: () => [
      counter('floodgate_tls_reloads_total', 'Certificates taken into use while running.', reloads),
      counter('floodgate_tls_reload_failures_total', 'Certificates that were refused.', reloadFailures),
      ...handshakeSamples(handshakes),
    ],
  };
}

function handshakeSamples({ failures, pair }: Handshakes): Sample[] {
  const expiry = gauge(
    'floodgate_tls_certificate_expiry_seconds',
    'When the certificate in use expires, in seconds since the epoch.',
    Math.floor(pair.expiresAt / 1000),
  );
  return [
    { ...expiry, aggregator: 'min' },
    ...Object.entries(failures).map(([reason, count]) =>
      counter('floodgate_tls_handshakes_failed_total', 'Connections that were not secured.', count, {
        reason,
      }),
    ),
  ];
}
