import type { StoreAccess } from './access.ts';
import { ClusterConnection } from './cluster.ts';
import type { ConnectionOptions, StoreConnection } from './connection.ts';
import { PrimaryConnection } from './primary.ts';
import { SentinelConnection } from './sentinel.ts';

export function openStore({ address, tls }: StoreAccess, options: ConnectionOptions): StoreConnection {
  switch (address.kind) {
    case 'standalone':
      return new PrimaryConnection(address, tls, options, () => address.endpoint);
    case 'sentinel':
      return new SentinelConnection(address, tls, options);
    case 'cluster':
      return new ClusterConnection(address, tls, options);
  }
}
