/** The news that fit the database. */
import type { DatabaseLocation } from '#api/db/location.ts';
import { type News, NO_NEWS } from './news.ts';
import { startTableNews, type TableNewsOptions } from './table-news.ts';

export async function openNews(location: DatabaseLocation, options: TableNewsOptions): Promise<News> {
  return location.kind === 'memory' ? NO_NEWS : startTableNews(options);
}
