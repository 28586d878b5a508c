import type { EntryLog } from '#gateway/observe/log-line.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { counter } from '#gateway/part/sample.ts';

export const accessLog = optionalPart({
  variables: [
    {
      name: 'GATEWAY_ACCESS_LOG',
      default: 'off',
      meaning: 'where to write one JSON line for each request: a file, `-` for standard output, or `off`',
    },
    {
      name: 'GATEWAY_ACCESS_LOG_SAMPLE',
      default: '1',
      meaning: 'share of the requests that are logged, from 0 to 1',
    },
  ],
  read(read) {
    const file = read.text('GATEWAY_ACCESS_LOG');
    const share = read.share('GATEWAY_ACCESS_LOG_SAMPLE');
    if (file === 'off' || file === '') return null;
    return {
      async open({ clock, log }: Surroundings) {
        const { AccessLog } = await import('./access-log.ts');
        const warn = (fields: object, message: string): void => log.warn(fields, message);
        const accessLog = new AccessLog({ file, share, clock, warn });
        const slots: { readonly accessLog: EntryLog } = { accessLog };
        return {
          slots,
          reload: () => accessLog.reopen(),
          samples: () => [
            counter(
              'floodgate_access_log_lost_total',
              'Lines of the access log that were lost.',
              accessLog.lost,
            ),
          ],
          close: () => accessLog.close(),
        };
      },
    };
  },
});
