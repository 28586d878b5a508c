/**
 * What other processes on the same database do, as far as this one has to know: a state has changed that is kept here, or
 * there is something to deliver. In a table with SQLite (table-news.ts), over a channel with PostgreSQL
 * (channel-news.ts).
 */
export interface NewsListener {
  /** Also of changes of our own. Comes after the commit. */
  onStateChange(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
  /** Changes may have been missed. */
  onGap(): void;
  /** Another process has written events. */
  onEvents(): void;
  /** Somebody has written mails, maybe this process. */
  onMails(): void;
}

export interface News {
  /** false: what others change now is heard of later. */
  isHeard(): boolean;
  /** Tells the others that there are new events. Losing it loses time, never an event. */
  tellEvents(): void;
  close(): Promise<void>;
}

/** There are no other processes: the database is in the memory of this one. */
export const NO_NEWS: News = {
  isHeard: () => true,
  tellEvents: () => undefined,
  close: async () => undefined,
};
