import type { EntryLog } from '#gateway/observe/log-line.ts';
import { optionalPart } from '#gateway/part/part.ts';
import { counter } from '#gateway/part/sample.ts';
import type { Variable } from '#shared/configuration.ts';

const VARIABLES = [
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
] as const satisfies readonly Variable[];

export const accessLog = optionalPart({
  name: 'access log',
  variables: VARIABLES,
  read(read) {
    const file = read.text('GATEWAY_ACCESS_LOG');
    const share = read.share('GATEWAY_ACCESS_LOG_SAMPLE');
    return file === 'off' || file === '' ? null : { file, share };
  },
  async open(settings, { clock, log }) {
    const { AccessLog } = await import('./access-log.ts');
    const accessLog = new AccessLog({
      ...settings,
      clock,
      warn: (fields, message) => log.warn(fields, message),
    });
    const slots: { readonly accessLog: EntryLog } = { accessLog };
    return {
      slots,
      reload: () => accessLog.reopen(),
      samples: () => [
        counter('floodgate_access_log_lost_total', 'Lines of the access log that were lost.', accessLog.lost),
      ],
      close: () => accessLog.close(),
    };
  },
});
