/** The certificate of the public listener. Reloads it when its files change, and reports when it expires. */

import type { Logger } from 'pino';
import { counter, gauge, type Sample } from '#gateway/part/sample.ts';
import { FileWatch } from '#gateway/policy/watched-file.ts';
import type { Clock } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { readRegularFile } from '#shared/regular-file.ts';
import { HandshakePace } from './handshake-pace.ts';
import { type HandshakeFailure, Handshakes } from './handshakes.ts';
import { expiryWarning, type KeyPair, type KeyPairFiles, keyBeside, keyPairLoader } from './key-pair.ts';

interface CertificateOptions {
  readonly files: KeyPairFiles;
  /** Contents of the files at the start. */
  readonly pair: KeyPair;
  /** Number of handshakes that one client may begin each second on average. */
  readonly handshakesPerClient: number;
  readonly clock: Clock;
  readonly wallClock: Clock;
  readonly log: Logger;
}

export class Certificate {
  readonly handshakes: Handshakes;
  readonly #options: CertificateOptions;
  readonly #watch: FileWatch<KeyPair>;
  #reloads = 0;
  #reloadFailures = 0;

  constructor(options: CertificateOptions) {
    const { files, pair, handshakesPerClient, clock, log } = options;
    this.#options = options;
    this.handshakes = new Handshakes(pair, {
      pace: new HandshakePace({ perSecond: handshakesPerClient, clock }),
      onTooFast: onceAMinute(clock, () =>
        log.warn(
          { limit: handshakesPerClient, setting: 'GATEWAY_TLS_HANDSHAKES_PER_CLIENT' },
          'a client address begins more TLS handshakes a second than it may; they wait',
        ),
      ),
    });
    this.#warn(pair);
    const inUse = { loaded: pair, text: pair.cert, referenced: new Map([[keyBeside(files), pair.key]]) };
    this.#watch = new FileWatch(inUse, {
      file: files.cert,
      read: readRegularFile,
      load: keyPairLoader(files),
      clock,
      onLoaded: (loaded) => {
        this.#reloads++;
        this.handshakes.use(loaded);
        log.info({ file: files.cert }, 'the new certificate is in use');
        this.#warn(loaded);
      },
      onRefused: ({ message }) => {
        this.#reloadFailures++;
        log.error({ reason: message }, 'the new certificate is refused; the old one stays in use');
      },
    });
  }

  start(): void {
    this.#watch.start();
  }

  /** Reloads even if the files seem unchanged. */
  reload(): void {
    this.#watch.reload();
  }

  close(): void {
    this.#watch.close();
  }

  samples(): Sample[] {
    const { failures, delayed, pair } = this.handshakes;
    const failed = 'floodgate_tls_handshakes_failed_total';
    return [
      {
        ...gauge(
          'floodgate_tls_certificate_expiry_seconds',
          'When the certificate in use expires, in seconds since the epoch.',
          Math.floor(pair.expiresAt / 1000),
        ),
        aggregator: 'min',
      },
      counter('floodgate_tls_reloads_total', 'Certificates taken into use while running.', this.#reloads),
      counter('floodgate_tls_reload_failures_total', 'Certificates that were refused.', this.#reloadFailures),
      counter(
        'floodgate_tls_handshakes_delayed_total',
        'Handshakes that waited because their client began too many before.',
        delayed,
      ),
      ...(Object.keys(failures) as HandshakeFailure[]).map((reason) =>
        counter(failed, 'Connections that were not secured.', failures[reason], { reason }),
      ),
    ];
  }

  #warn(pair: KeyPair): void {
    const warning = expiryWarning(pair, this.#options.files.cert, this.#options.wallClock);
    if (warning !== null) this.#options.log.warn(warning);
  }
}
