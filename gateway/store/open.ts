import type { StoreAccess } from './access.ts';
import { ClusterConnection } from './cluster.ts';
import type { ConnectionOptions, StoreConnection } from './connection.ts';
import { RedisNode } from './node.ts';
import { SentinelConnection } from './sentinel.ts';

export function openStore({ address, tls }: StoreAccess, options: ConnectionOptions): StoreConnection {
  switch (address.kind) {
    case 'standalone': {
      const { endpoint, database, username, password } = address;
      const login = { database, username, password, tls };
      return new RedisNode({ ...options, ...login, expects: 'primary', locate: () => endpoint });
    }
    case 'sentinel':
      return new SentinelConnection(address, tls, options);
    case 'cluster':
      return new ClusterConnection(address, tls, options);
  }
}
