/** fast-check with the seed of the tests. A property that fails prints this seed. */
import fc from 'fast-check';
import { SEED } from './seed.ts';

fc.configureGlobal({ seed: SEED });

export { fc };
