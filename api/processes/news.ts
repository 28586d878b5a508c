/**
 * Change notifications between processes on the same database: a cached state has changed, or there is something to
 * deliver. SQLite uses a table (table-news.ts), PostgreSQL a channel (channel-news.ts).
 */
export interface NewsListener {
  /** Called after the commit, also for changes of this process. */
  onStateChange(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
  /** Called if notifications may have been missed. */
  onGap(): void;
  /** Called if another process has written events. */
  onEvents(): void;
  /** Called if some process, possibly this one, has written mails. */
  onMails(): void;
}

export interface News {
  /** Whether notifications of other processes arrive. If not, their changes are noticed later. */
  isHeard(): boolean;
  /** Notifies other processes about new events. A lost notification delays an event, but never loses one. */
  tellEvents(): void;
  close(): Promise<void>;
}

/** Creates notifications for a database in memory, which has no other processes. */
export const NO_NEWS: News = {
  isHeard: () => true,
  tellEvents: () => undefined,
  close: async () => undefined,
};
