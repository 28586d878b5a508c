import type { NewsListener } from '#api/processes/news.ts';

/** Records the notifications that it receives. */
export function listenerTo(heard: string[]): NewsListener {
  return {
    onStateChange: ({ workspaceId, environmentId }) => void heard.push(`${workspaceId} ${environmentId}`),
    onGap: () => void heard.push('gap'),
    onEvents: () => void heard.push('events'),
    onMails: () => void heard.push('mails'),
  };
}
