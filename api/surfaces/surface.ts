/**
 * A surface is a part of the API with one kind of caller. Its file says for all of its routes who may call them, how
 * they are limited, and what an error looks like. A route with other rules says so in its own options
 * (`config.credentials`, `config.limit`).
 */
import type { Credentials } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import type { ReplyRules } from '#api/http/reply-headers.ts';
import type { SurfaceLimit } from '#api/limits/plugin.ts';

export interface Surface extends ReplyRules {
  readonly name: 'client' | 'management' | 'v2' | 'v3' | 'pages';
  /** Paths that equal one of these, or are below one. Empty for every path that no other surface has. */
  readonly prefixes: readonly string[];
  /**
   * The credentials that requests need; null if none. They are checked first, also on paths that do not exist, so that
   * callers without credentials do not learn which paths exist.
   */
  readonly credentials: Credentials | null;
  /** The limit of the routes; null if the application does not limit them. */
  readonly limit: SurfaceLimit | null;
  readonly routes: readonly Routes[];
}
