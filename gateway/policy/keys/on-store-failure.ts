import { policyKey } from './key.ts';

export const onStoreFailure = policyKey({
  schema: {
    enum: ['allow', 'deny', 'local'],
    description: 'allow, deny, or local (the default: counters of this process, limit divided by replicas)',
  },
  default: 'local',
  more: 'See [When the store is gone](#when-the-store-is-gone)',
  read: (rule) => rule,
  counted: ({ onStoreFailure }) => onStoreFailure,
});
