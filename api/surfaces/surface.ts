/**
 * A surface is a part of the API with one kind of caller. Its file answers three questions for all of its routes: who may
 * call them, how they are limited, and what an error looks like. A route may narrow these in its own options
 * (`config.credentials`, `config.limit`), which is then said where the route stands.
 */
import type { Credentials } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import type { ReplyRules } from '#api/http/reply-headers.ts';
import type { SurfaceLimit } from '#api/limits/plugin.ts';

export interface Surface extends ReplyRules {
  readonly name: 'client' | 'management' | 'v2' | 'v3' | 'pages';
  /** Paths that are one of these, or below one. Empty: every path that no other surface has. */
  readonly prefixes: readonly string[];
  /**
   * What proves who is calling. It comes first, also on paths that lead nowhere: strangers do not learn which paths exist.
   * null: nobody is asked.
   */
  readonly credentials: Credentials | null;
  /** null: the application does not limit its routes. */
  readonly limit: SurfaceLimit | null;
  readonly routes: readonly Routes[];
}
