import type { OpenSessions } from '#gateway/listen/entrance.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';

export const http2 = optionalPart({
  variables: [
    {
      name: 'GATEWAY_HTTP2',
      default: '0',
      meaning:
        '1 offers HTTP/2 in addition to HTTP/1.1; needs TLS. Leave it off: the next release removes it',
    },
  ],
  read(read, { scheme, protocols }) {
    if (!read.flag('GATEWAY_HTTP2')) return null;
    if (scheme === 'http') {
      read.refuse(
        'GATEWAY_HTTP2',
        'it needs GATEWAY_TLS_CERT and GATEWAY_TLS_KEY: clients ask for it over TLS',
      );
    }
    protocols.unshift('h2');
    return { open: openHttp2 };
  },
});

async function openHttp2({ clock, log }: Surroundings) {
  const { FrameShare } = await import('./frame-share.ts');
  const { Http2Sessions } = await import('./sessions.ts');
  const frames = new FrameShare({
    onFlood: onceAMinute(clock, () =>
      log.warn(
        'a client sends too many HTTP/2 frames besides requests; its connections are cut for a second',
      ),
    ),
  });
  const slots: { readonly openSessions: OpenSessions } = {
    openSessions: (events) => new Http2Sessions({ ...events, frames }),
  };
  return { slots, samples: () => frames.samples() };
}
