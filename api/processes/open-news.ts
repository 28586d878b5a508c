/** Opens the change notifications that fit the database. */
import type { DatabaseLocation } from '#api/db/location.ts';
import { type ChannelNewsOptions, startChannelNews } from './channel-news.ts';
import { type News, NO_NEWS } from './news.ts';
import { startTableNews, type TableNewsOptions } from './table-news.ts';

export async function openNews(
  location: DatabaseLocation,
  options: Omit<TableNewsOptions, 'pollMs'> & Omit<ChannelNewsOptions, 'location' | 'proofMs'>,
): Promise<News> {
  switch (location.kind) {
    case 'memory':
      return NO_NEWS;
    case 'file':
      return startTableNews(options);
    case 'postgres':
      return startChannelNews({ ...options, location });
  }
}
