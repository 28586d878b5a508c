/** The limit that applies to every route of a surface, unless the route names another one. Pure. */
import type { Principal } from '#api/auth/principal.ts';
import type { LimitName } from './table.ts';

export interface RoutedRequest {
  readonly method: string;
  /** The router's pattern; the request's path where no route matches. */
  readonly route: string;
  /** null: nobody was asked who is calling. */
  readonly principal: Principal | null;
}

export interface SurfaceLimit {
  readonly name: LimitName;
  /** The gateway counts this request; the application does not count it a second time. */
  isCountedByGateway(request: RoutedRequest): boolean;
}

/** @returns null: no limit of the application applies */
export function limitOf(limit: SurfaceLimit | null, request: RoutedRequest): LimitName | null {
  return limit === null || limit.isCountedByGateway(request) ? null : limit.name;
}
