/** Watches the files of GATEWAY_TRUSTED_PROXIES. A file with a mistake changes nothing. */
import type { Logger } from 'pino';
import { FileWatch } from '#gateway/policy/watched-file.ts';
import type { Network, TrustedFile } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { readRegularFile } from '#shared/regular-file.ts';
import { networksIn } from '#shared/trusted-proxies.ts';

/** @param log null if another process reports changes */
export function watchOf(
  file: TrustedFile,
  clock: Clock,
  log: Pick<Logger, 'info' | 'error'> | null,
): FileWatch<readonly Network[]> {
  return new FileWatch(
    { loaded: file.networks, text: file.firstText, referenced: new Map() },
    {
      file: file.name,
      read: readRegularFile,
      load: (text) => networksIn(text, file.name),
      sizesOf: ({ length }) => new Map([[file.name, length]]),
      clock,
      onLoaded: (networks) => {
        file.use(networks);
        log?.info(
          { file: file.name, networks: networks.length },
          'the edited file of trusted proxies is in use',
        );
      },
      onRefused: ({ message }) => {
        file.refuse(message);
        log?.error(
          { reason: message },
          'the edited file of trusted proxies is refused; the old networks stay trusted',
        );
      },
    },
  );
}
