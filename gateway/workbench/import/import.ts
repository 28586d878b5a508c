/** Converts the limits of Envoy to a policy file: those of Envoy Gateway, and those of envoyproxy/ratelimit. */
import { importEnvoy } from './envoy.ts';
import { ImportError, type Product } from './imported.ts';
import { type PolicyText, policyText } from './policy-text.ts';
import { importRateLimitService } from './rate-limit-service.ts';
import { readTrees, type Tree } from './tree.ts';

const NAMES: Readonly<Record<Product, string>> = {
  envoy: 'Envoy Gateway',
  ratelimit: 'envoyproxy/ratelimit',
};
export const PRODUCTS = ['envoy', 'ratelimit'] as const satisfies readonly Product[];
const BYTES_MAX = 4_194_304;
const OTHERS =
  'the documentation shows how the lines of other products are written here: Coming from another product';

export interface ImportResult extends PolicyText {
  readonly from: Product;
}

/**
 * @param file its name, for comments
 * @param from null to recognize the product by the content
 * @throws ImportError with the mistake in the file
 */
export function importText(text: string, file: string, from: Product | null): ImportResult {
  if (Buffer.byteLength(text) > BYTES_MAX) throw new ImportError('it has more than 4 MiB; split it');
  // Outside of quotes, nothing else in a YAML file begins like this.
  if (/^[^#'"`]*\{\{-?\s*[.\w]/m.test(text))
    throw new ImportError('it is a template; give it what "helm template" makes of it');
  const trees = readTrees(text);
  const product = from ?? productOf(trees);
  if (product === null) throw new ImportError(`it is none of ${Object.values(NAMES).join(', ')}; ${OTHERS}`);
  const imported = product === 'envoy' ? importEnvoy(trees) : importRateLimitService(trees);
  return { from: product, ...policyText(imported, file, NAMES[product]) };
}

function productOf(trees: readonly Tree[]): Product | null {
  if (trees.some((tree) => tree.at('descriptors').isPresent)) return 'ratelimit';
  const resources = trees.flatMap((tree) => [tree, ...tree.at('items').items()]);
  return resources.some((one) => one.at('kind').text === 'BackendTrafficPolicy') ? 'envoy' : null;
}
